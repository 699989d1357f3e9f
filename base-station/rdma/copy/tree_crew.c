/* Threads that write small files: see tree_crew.h. */
#include "tree_crew.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "tree_folder.h"
#include "tree_part.h"

static void add(struct tree_small_row *row, struct tree_small *file)
{
    file->next = NULL;
    *(row->first ? &row->last->next : &row->first) = file;
    row->last = file;
}

static struct tree_small *take(struct tree_small_row *row)
{
    struct tree_small *file = row->first;
    if (file)
        row->first = file->next;
    return file;
}

/* It has no name before all is in it: of one that is cut nothing is left. */
static int make(struct tree_small *file, const struct rdcp_options *options)
{
    int fd = part_nameless(file->folder, file->attributes->mode & 0777);
    if (fd < 0)
        return ENOTSUP;
    int result = part_write(fd, file->content.data, file->content.length, 0);
    if (result == 0) {
        file->lost = tree_keep_attributes(fd, file->attributes, file->xattrs, options,
                                          &file->lost_error);
        result = part_name_it(fd, file->folder, file->name);
    }
    if (result == 0)
        result = fstat(fd, &file->state);
    int error = result < 0 ? errno : 0;
    close(fd);
    return error;
}

static void *work(void *argument)
{
    struct tree_worker *worker = argument;
    struct tree_crew *crew = worker->crew;
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        struct tree_small *file = take(&worker->todo);
        if (!file && crew->over)
            break;
        if (!file) {
            pthread_cond_wait(&worker->given, &crew->lock);
            continue;
        }
        pthread_mutex_unlock(&crew->lock);
        file->error = make(file, crew->options);
        pthread_mutex_lock(&crew->lock);
        add(&crew->done, file);
        crew->working--;
        if (!worker->todo.first)
            pthread_cond_signal(&crew->changed);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

void tree_crew_open(struct tree_crew *crew, const struct rdcp_options *options)
{
    cpu_set_t cpus;
    int most = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    *crew = (struct tree_crew){.options = options};
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->changed, NULL);
    for (int i = 0; i < most && i < CREW_THREADS; i++) {
        struct tree_worker *worker = &crew->worker[crew->threads];
        worker->crew = crew;
        pthread_cond_init(&worker->given, NULL);
        crew->threads += pthread_create(&worker->thread, NULL, work, worker) == 0;
    }
}

void tree_crew_give(struct tree_crew *crew, struct tree_small *file)
{
    unsigned which = 0;
    for (const char *at = file->name; *at; at++)
        which = which * 31 + (unsigned char)*at;
    crew->busy++;
    if (!crew->threads) {
        file->error = make(file, crew->options);
        add(&crew->done, file);
        return;
    }
    struct tree_worker *worker = &crew->worker[which % crew->threads];
    pthread_mutex_lock(&crew->lock);
    crew->working++;
    add(&worker->todo, file);
    pthread_cond_signal(&worker->given);
    pthread_mutex_unlock(&crew->lock);
}

struct tree_small *tree_crew_take(struct tree_crew *crew, bool waits)
{
    if (!crew->busy)
        return NULL;
    pthread_mutex_lock(&crew->lock);
    struct tree_small *file;
    while (!(file = take(&crew->done)) && waits)
        pthread_cond_wait(&crew->changed, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
    crew->busy -= file != NULL;
    return file;
}

struct tree_small *tree_crew_wait(struct tree_crew *crew)
{
    if (!crew->busy)
        return NULL;
    pthread_mutex_lock(&crew->lock);
    while (crew->working)
        pthread_cond_wait(&crew->changed, &crew->lock);
    struct tree_small *first = crew->done.first;
    pthread_mutex_unlock(&crew->lock);
    return first;
}

void tree_crew_close(struct tree_crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->over = true;
    for (unsigned i = 0; i < crew->threads; i++)
        pthread_cond_signal(&crew->worker[i].given);
    pthread_mutex_unlock(&crew->lock);
    for (unsigned i = 0; i < crew->threads; i++)
        pthread_join(crew->worker[i].thread, NULL);
}
