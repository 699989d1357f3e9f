/* Threads of a sink: they look up existing entries, and write small files that replace no entry,
 * because most of that cost is independent file system work. See tree_sink.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "tree_part.h"
#include "tree_sink.h"

enum {
    ROW_MOST = 16,   /* files a thread receives at once, to wake it less often */
    SOUGHT_ROW = 64, /* the same, for lookups */
    SOUGHT_MOST = 8, /* lookup batches in progress; further batches run in the main thread */
    BUSY_MOST = 256, /* in all threads; a pipe holds as many pointers */
};

/* Write the file and then name it, so that a cut copy leaves no trace. Set ENOTSUP if the file
 * system requires a name from the start. */
static void make(struct tree_file *file)
{
    int folder = file->folder->fd;
    int fd = part_nameless(folder, file->attributes.mode & 0777);
    file->error = fd < 0 ? ENOTSUP : 0;
    if (fd < 0)
        return;
    int result = part_write(fd, file->content.data, file->content.length, 0);
    if (result == 0) {
        file->lost = tree_keep(fd, &file->attributes);
        result = part_name_it(fd, folder, file->name);
    }
    if (result < 0 || fstat(fd, &file->stat) < 0)
        file->error = errno;
    shut(&fd);
}

static void seek(struct tree_file *file)
{
    int found = fstatat(file->folder->fd, file->name, &file->stat, AT_SYMLINK_NOFOLLOW);
    file->error = found < 0 && errno != ENOENT ? errno : 0;
}

static struct tree_file *pull(int fd)
{
    struct tree_file *file = NULL;
    while (read(fd, &file, sizeof file) < 0 && errno == EINTR)
        ;
    return file; /* NULL at end of input */
}

static void push(int fd, struct tree_file *file)
{
    while (write(fd, &file, sizeof file) < 0 && errno == EINTR)
        ;
}

static void *work(void *argument)
{
    const struct tree_thread *thread = argument;
    struct tree_file *row;
    while ((row = pull(thread->todo[0]))) {
        for (struct tree_file *file = row; file; file = file->next)
            if (file->state == FILE_SOUGHT)
                seek(file);
            else
                make(file);
        push(thread->crew->done[1], row);
    }
    return NULL;
}

int tree_crew_open(struct tree_crew *crew)
{
    cpu_set_t cpus;
    int most = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    *crew = (struct tree_crew){.done = {-1, -1}};
    if (pipe2(crew->done, O_CLOEXEC) < 0)
        return -1;
    for (int i = 0; i < most && i < CREW_THREADS; i++) {
        struct tree_thread *thread = &crew->thread[crew->threads];
        thread->crew = crew;
        thread->end = &thread->first;
        if (pipe2(thread->todo, O_CLOEXEC) < 0)
            break;
        errno = pthread_create(&thread->thread, NULL, work, thread);
        if (errno) {
            shut(&thread->todo[0]);
            shut(&thread->todo[1]);
            break;
        }
        crew->threads++;
    }
    return crew->threads ? 0 : -1;
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

/* Look up this batch in a thread, or here if it is incomplete or the threads have enough. */
static void send_sought(struct tree_crew *crew)
{
    struct tree_file *row = crew->sought;
    bool here = crew->sought_count < SOUGHT_ROW || crew->seeking >= SOUGHT_MOST;
    if (!row)
        return;
    for (struct tree_file *file = here ? row : NULL; file; file = file->next)
        seek(file);
    crew->busy += crew->sought_count;
    crew->seeking++;
    crew->sought = NULL;
    crew->sought_count = 0;
    push(here ? crew->done[1]
              : crew->thread[row->number / SOUGHT_ROW % crew->threads].todo[1], row);
}

bool tree_crew_seek(struct tree_crew *crew, struct tree_file *file)
{
    file->state = FILE_SOUGHT;
    *(crew->sought ? crew->sought_end : &crew->sought) = file;
    crew->sought_end = &file->next;
    if (++crew->sought_count < SOUGHT_ROW)
        return false;
    send_sought(crew);
    return true;
}

static void send_row(struct tree_thread *thread)
{
    if (thread->first)
        push(thread->todo[1], thread->first);
    thread->first = NULL;
    thread->end = &thread->first;
    thread->count = 0;
}

bool tree_crew_full(const struct tree_crew *crew)
{
    return crew->busy >= BUSY_MOST;
}

/* Files of the same name go to the same thread, so that they are placed in order. */
void tree_crew_write(struct tree_crew *crew, struct tree_file *file)
{
    unsigned which = 0;
    for (const char *at = file->name; *at; at++)
        which = which * 31 + (unsigned char)*at;
    struct tree_thread *thread = &crew->thread[which % crew->threads];
    file->state = FILE_GIVEN;
    file->next = NULL;
    crew->busy++;
    *thread->end = file;
    thread->end = &file->next;
    if (++thread->count == ROW_MOST)
        send_row(thread);
}

void tree_crew_flush(struct tree_crew *crew)
{
    send_sought(crew);
    for (unsigned i = 0; i < crew->threads; i++)
        send_row(&crew->thread[i]);
}

struct tree_file *tree_crew_next(struct tree_crew *crew, const struct tree_made *made, bool waits)
{
    struct pollfd done = {crew->done[0], POLLIN, 0};
    if (!crew->back) {
        if (!crew->busy || (!waits && poll(&done, 1, 0) <= 0))
            return NULL;
        crew->back = pull(crew->done[0]);
        crew->seeking -= crew->back->state == FILE_SOUGHT;
        for (const struct tree_file *file = crew->back; file; file = file->next)
            tree_made_prefetch(made, &file->stat);
    }
    struct tree_file *file = crew->back;
    crew->back = file->next;
    crew->busy--;
    return file;
}
