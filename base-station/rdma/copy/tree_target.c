/* What stands at DST: what may take its place, what was made there, and folders that are
 * done. See tree_sink.h. */
#include "tree_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tree_part.h"

void tree_sink_complain(struct sink *sink, const struct tree_folder *folder,
                        const char *name, const char *what)
{
    tree_folder_complain(folder, &sink->errors, sink->target, name, what);
}

int tree_sink_refuse(const char *why)
{
    fprintf(stderr, "rdcp: the stream: %s\n", why);
    return -1;
}

void tree_sink_not_kept(struct sink *sink, const struct tree_folder *folder,
                        const char *name, const char *what, int error)
{
    char text[128];
    snprintf(text, sizeof text, "arrived, but its %s could not be kept: %s", what,
             strerror(error));
    tree_sink_complain(sink, folder, name, text);
}

/* Nobody uses it any more: all is in it. */
static void finish(struct sink *sink, struct tree_folder *folder)
{
    struct timespec times[2] = {timespec_of(folder->attributes.atime_ns),
                                timespec_of(folder->attributes.mtime_ns)};
    if (folder->fd >= 0 && sink->options->delete)
        tree_folder_extra(folder, sink->options, &sink->extra);
    if (folder->fd < 0 || sink->options->dry_run)
        return;
    if (folder->had_parts)
        part_find(folder->fd, true);
    const char *lost = NULL;
    int error = 0;
    if (folder->keep == KEEP_ALL)
        lost = tree_keep_attributes(folder->fd, &folder->attributes, folder->xattrs,
                                    sink->options, &error);
    else if (folder->keep == KEEP_TIMES && futimens(folder->fd, times) < 0)
        lost = "time";
    if (lost)
        tree_sink_not_kept(sink, folder->up, folder->name, lost, error ? error : errno);
}

void tree_sink_leave(struct sink *sink, struct tree_folder *folder)
{
    while (--folder->uses == 0 && folder != &sink->top) {
        struct tree_folder *up = folder->up;
        if (!sink->cut) /* else it keeps the mode of the unfinished */
            finish(sink, folder);
        tree_folder_free(folder);
        folder = up;
    }
}

const char *tree_sink_name(const struct sink *sink, const struct tree_record *record)
{
    return sink->in == &sink->top && sink->base.rename ? sink->base.rename : record->name;
}

bool tree_sink_is_one(const struct sink *sink, uint64_t device, uint64_t inode,
                      const struct stat *state)
{
    return sink->source_here && inode == state->st_ino &&
           device == (uint32_t)state->st_dev;
}

/* Is what has the name, `state`, the source of what is to take its place? As with cp, a
 * link to a file is that file, unless a link takes its place: then what this one leads to
 * is safe. */
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

/* What the threads have made is among what was made. */
static void know_made(struct sink *sink)
{
    for (struct tree_small *one = tree_crew_wait(&sink->crew); one; one = one->next)
        if (!one->error)
            tree_made_add(&sink->made, &one->state, 0);
}

void tree_sink_one_by_one(struct sink *sink)
{
    if (sink->options->many)
        know_made(sink);
}

const char *tree_sink_in_the_way(struct sink *sink, const struct tree_folder *folder,
                                 const char *name, const struct tree_attributes *own,
                                 const struct tree_record *link, struct stat *state)
{
    *state = (struct stat){0};
    if (fstatat(folder->fd, name, state, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? NULL : strerror(errno);
    know_made(sink);
    if (is_source(sink, folder, name, own, link, state))
        return "source and target are the same file";
    if (tree_made_find(&sink->made, state))
        return "another source had that name: it is not replaced";
    if (S_ISREG(state->st_mode) || S_ISLNK(state->st_mode))
        return NULL;
    return S_ISDIR(state->st_mode) ? "a directory has that name"
                                   : "a device, a FIFO or a socket has that name";
}

void tree_sink_remember(struct sink *sink, const struct tree_folder *folder,
                        const char *name, const struct stat *state)
{
    tree_made_add(&sink->made, state, 0);
    if (!sink->options->manifest || !S_ISREG(state->st_mode))
        return;
    char *path = tree_folder_path(folder, name);
    words_add(&sink->manifest.paths, path);
    free(path);
}
