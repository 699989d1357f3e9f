/*
 * Naming of finished files. Threads write small files that replace no entry, because most of that
 * cost is independent file system work; other files are written as part files. Threads also look up
 * existing entries. See tree_sink.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
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

void tree_place_begin(struct sink *sink, struct tree_file *file)
{
    char *why = NULL;
    file->state = FILE_IN_PART;
    file->fd = part_open(file->folder->fd, file->name, &file->attributes, file->size, &why);
    if (file->fd < 0)
        tree_file_give_up(sink, file, why);
    free(why);
}

static void placed(struct sink *sink, struct tree_file *file, struct tree_lost lost,
                   const struct stat *state)
{
    tree_sink_not_kept(sink, file->folder, file->name, lost);
    sink->count++;
    tree_file_settle(sink, file, TREE_PLACED, state);
}

/*
 * Rename the part file to its final name. With several sources, two files may have the same name:
 * files held by threads are placed first.
 */
static void place_part(struct sink *sink, struct tree_file *file)
{
    const struct tree_folder *folder = file->folder;
    struct stat state;
    if (sink->many)
        tree_place_all(sink);
    const char *why =
        tree_in_the_way(sink, folder, file->name, &file->attributes, NULL, &state);
    if (!why && !sink->options->no_sync && file->size >= PART_LEAST && fsync(file->fd) < 0)
        why = strerror(errno);
    if (why)
        return tree_file_refuse(sink, file, why);
    struct tree_lost lost = tree_keep(file->fd, &file->attributes);
    if (part_publish(folder->fd, file->name) < 0 || fstat(file->fd, &state) < 0)
        tree_file_refuse(sink, file, strerror(errno));
    else
        placed(sink, file, lost, &state);
}

/* Place a small file through a part file. */
static void place_as_part(struct sink *sink, struct tree_file *file)
{
    tree_place_begin(sink, file);
    if (file->state == FILE_IN_PART &&
        part_write(file->fd, file->content.data, file->content.length, 0) < 0)
        tree_file_give_up(sink, file, strerror(errno));
    if (file->state == FILE_NOWHERE)
        tree_file_settle(sink, file, TREE_REFUSED, NULL);
    else
        place_part(sink, file);
}

/*
 * Write the file and then name it, so that a cut copy leaves no trace. Set ENOTSUP if the file
 * system requires a name from the start.
 */
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

int tree_place_open(struct sink *sink, tree_go_on *go_on)
{
    cpu_set_t cpus;
    int most = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    struct tree_crew *crew = &sink->crew;
    *crew = (struct tree_crew){.go_on = go_on, .done = {-1, -1}};
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

void tree_place_close(struct sink *sink)
{
    struct tree_crew *crew = &sink->crew;
    for (unsigned i = 0; i < crew->threads; i++) {
        shut(&crew->thread[i].todo[1]);
        pthread_join(crew->thread[i].thread, NULL);
        shut(&crew->thread[i].todo[0]);
    }
    shut(&crew->done[0]);
    shut(&crew->done[1]);
}

/* Process the next file that a thread has finished. */
static void take_back(struct sink *sink)
{
    struct tree_crew *crew = &sink->crew;
    struct tree_file *file = crew->back;
    if (!file) {
        file = pull(crew->done[0]);
        crew->seeking -= file->state == FILE_SOUGHT;
        for (const struct tree_file *one = file; one; one = one->next)
            tree_made_prefetch(&sink->made, &one->stat);
    }
    crew->back = file->next;
    crew->busy--;
    if (file->state == FILE_SOUGHT)
        crew->go_on(sink, file);
    else if (file->error == ENOTSUP || file->error == EEXIST)
        place_as_part(sink, file);
    else if (file->error)
        tree_file_refuse(sink, file, strerror(file->error));
    else
        placed(sink, file, file->lost, &file->stat);
}

static void send_row(struct tree_thread *thread)
{
    if (thread->first)
        push(thread->todo[1], thread->first);
    thread->first = NULL;
    thread->end = &thread->first;
    thread->count = 0;
}

/* Look up this batch in a thread, or here if the threads have enough batches. */
static void seek_row(struct sink *sink)
{
    struct tree_crew *crew = &sink->crew;
    struct pollfd done = {crew->done[0], POLLIN, 0};
    struct tree_file *file = crew->sought, *next;
    bool given = crew->sought_count == SOUGHT_ROW && crew->seeking < SOUGHT_MOST;
    if (given) {
        push(crew->thread[file->number / SOUGHT_ROW % crew->threads].todo[1], file);
        crew->busy += SOUGHT_ROW;
        crew->seeking++;
    }
    crew->sought = NULL;
    crew->sought_count = 0;
    for (struct tree_file *one = given ? NULL : file; one; one = one->next) {
        seek(one);
        tree_made_prefetch(&sink->made, &one->stat);
    }
    for (; !given && file; file = next) {
        next = file->next;
        crew->go_on(sink, file);
    }
    while (crew->seeking && poll(&done, 1, 0) > 0)
        do
            take_back(sink);
        while (crew->back);
}

void tree_place_seek(struct sink *sink, struct tree_file *file)
{
    struct tree_crew *crew = &sink->crew;
    file->state = FILE_SOUGHT;
    *(crew->sought ? crew->sought_end : &crew->sought) = file;
    crew->sought_end = &file->next;
    if (++crew->sought_count == SOUGHT_ROW)
        seek_row(sink);
}

void tree_place_all(struct sink *sink)
{
    seek_row(sink);
    for (unsigned i = 0; i < sink->crew.threads; i++)
        send_row(&sink->crew.thread[i]);
    while (sink->crew.busy)
        take_back(sink);
}

/*
 * Hand the file to a thread. Files of the same name go to the same thread, so that they are placed
 * in order.
 */
static void give(struct sink *sink, struct tree_file *file)
{
    struct tree_crew *crew = &sink->crew;
    unsigned which = 0;
    for (const char *at = file->name; *at; at++)
        which = which * 31 + (unsigned char)*at;
    struct tree_thread *thread = &crew->thread[which % crew->threads];
    file->state = FILE_GIVEN;
    file->next = NULL;
    while (crew->busy >= BUSY_MOST)
        take_back(sink);
    crew->busy++;
    *thread->end = file;
    thread->end = &file->next;
    if (++thread->count == ROW_MOST)
        send_row(thread);
}

void tree_place(struct sink *sink, struct tree_file *file)
{
    if (file->state == FILE_IN_PART)
        place_part(sink, file);
    else if (file->replaces || !file->folder->up) /* a cut copy may have left a part file */
        place_as_part(sink, file);
    else
        give(sink, file);
}

/*
 * True if the existing entry `state` is the source of the entry to be placed. As with cp, a link to
 * a file counts as that file, unless a link replaces it: then the target of the existing link is
 * safe.
 */
static bool is_source(const struct sink *sink, const struct tree_folder *folder,
                      const char *name, const struct tree_attributes *own,
                      const struct tree_record *link, const struct stat *state)
{
    struct stat file;
    if (tree_sink_is_one(sink, own->device, own->inode, state))
        return true;
    if (link)
        return tree_sink_is_one(sink, link->device, link->inode, state);
    return S_ISLNK(state->st_mode) && fstatat(folder->fd, name, &file, 0) == 0 &&
           tree_sink_is_one(sink, own->device, own->inode, &file);
}

const char *tree_in_the_way(struct sink *sink, const struct tree_folder *folder,
                            const char *name, const struct tree_attributes *own,
                            const struct tree_record *link, struct stat *state)
{
    *state = (struct stat){0};
    if (fstatat(folder->fd, name, state, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? NULL : strerror(errno);
    tree_place_all(sink); /* so that all placed files are in `made` */
    return tree_found_in_the_way(sink, folder, name, own, link, state);
}

const char *tree_found_in_the_way(const struct sink *sink, const struct tree_folder *folder,
                                  const char *name, const struct tree_attributes *own,
                                  const struct tree_record *link, const struct stat *state)
{
    if (is_source(sink, folder, name, own, link, state))
        return "source and target are the same file";
    if (tree_made_find(&sink->made, state))
        return "another source had that name: it is not replaced";
    if (S_ISREG(state->st_mode) || S_ISLNK(state->st_mode))
        return NULL;
    return S_ISDIR(state->st_mode) ? "a directory has that name"
                                   : "a device, a FIFO or a socket has that name";
}
