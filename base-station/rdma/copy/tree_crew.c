/* Threads that do a piece of work each: see tree_crew.h. */
#include "tree_crew.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "descriptors.h"

static void *pull(int fd)
{
    void *piece = NULL;
    while (read(fd, &piece, sizeof piece) < 0 && errno == EINTR)
        ;
    return piece; /* NULL at the end */
}

static void push(int fd, void *piece)
{
    while (write(fd, &piece, sizeof piece) < 0 && errno == EINTR)
        ;
}

static void *run(void *argument)
{
    const struct crew_thread *thread = argument;
    const struct tree_crew *crew = thread->crew;
    void *piece;
    while ((piece = pull(thread->todo[0]))) {
        crew->work(piece, crew->options);
        push(crew->done[1], piece);
    }
    return NULL;
}

int tree_crew_open(struct tree_crew *crew, void (*work)(void *, const void *),
                   const void *options)
{
    cpu_set_t cpus;
    int most = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    *crew = (struct tree_crew){.work = work, .options = options};
    if (pipe2(crew->done, O_CLOEXEC) < 0)
        return -1;
    for (int i = 0; i < most && i < CREW_THREADS; i++) {
        struct crew_thread *thread = &crew->thread[crew->threads];
        thread->crew = crew;
        if (pipe2(thread->todo, O_CLOEXEC) < 0)
            break;
        if ((errno = pthread_create(&thread->thread, NULL, run, thread)) == 0) {
            crew->threads++;
        } else {
            shut(&thread->todo[0]);
            shut(&thread->todo[1]);
        }
    }
    return crew->threads ? 0 : -1;
}

void tree_crew_give(struct tree_crew *crew, void *piece, const char *name)
{
    unsigned which = 0;
    for (; *name; name++)
        which = which * 31 + (unsigned char)*name;
    crew->busy++;
    push(crew->thread[which % crew->threads].todo[1], piece);
}

void *tree_crew_take(struct tree_crew *crew)
{
    crew->busy--;
    return pull(crew->done[0]);
}

void tree_crew_close(struct tree_crew *crew)
{
    for (unsigned i = 0; i < crew->threads; i++) {
        shut(&crew->thread[i].todo[1]);
        pthread_join(crew->thread[i].thread, NULL);
        shut(&crew->thread[i].todo[0]);
    }
    shut(&crew->done[0]);
    shut(&crew->done[1]);
}
