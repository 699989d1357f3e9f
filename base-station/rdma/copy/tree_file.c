/* Files of a sink, from their announcement to their final answer: see tree_sink.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "descriptors.h"
#include "tree_part.h"
#include "tree_sink.h"

/*
 * Limit on files with a queued answer. A higher limit could stall the source; a lower one wakes all
 * processes of the sessions more often.
 */
enum { DUE_MOST = 4096 };

/* --- answers --- */

void tree_file_answers(struct sink *sink)
{
    if (sink->run.count)
        tree_write(&sink->line, &sink->run);
    sink->run.count = 0;
}

void tree_file_answer(struct sink *sink, const struct tree_file *file,
                      enum tree_verdict verdict, uint64_t from)
{
    struct tree_record *run = &sink->run;
    if (!run->count || run->verdict != verdict || from || run->from ||
        run->number + run->count != file->number) {
        tree_file_answers(sink);
        run->kind = TREE_ANSWER;
        run->number = file->number;
        run->verdict = verdict;
        run->from = from;
    }
    run->count++;
    if (++sink->due < DUE_MOST)
        return;
    sink->due = 0;
    tree_file_answers(sink);
    tree_flush(&sink->line);
}

/* Finish the file. `state` describes the entry that now has its name; NULL: no entry. */
static void settle(struct sink *sink, struct tree_file *file, enum tree_verdict verdict,
                   const struct stat *state)
{
    tree_file_answer(sink, file, verdict, 0);
    if (state)
        tree_made_add(&sink->made, state);
    sink->files[file->number % TREE_WINDOW] = NULL;
    tree_folder_leave(sink, file->folder);
    shut(&file->fd);
    bytes_close(&file->content);
    free(file);
}

void tree_file_give_up(struct sink *sink, struct tree_file *file, const char *why)
{
    if (why)
        tree_sink_complain(sink, file->folder, file->name, why);
    if (file->fd >= 0)
        part_drop(file->folder->fd, file->name);
    shut(&file->fd);
    file->state = FILE_NOWHERE;
}

void tree_file_refuse(struct sink *sink, struct tree_file *file, const char *why)
{
    tree_file_give_up(sink, file, why);
    settle(sink, file, TREE_REFUSED, NULL);
}

void tree_file_drop_all(struct sink *sink)
{
    tree_file_await(sink);
    for (size_t i = 0; i < TREE_WINDOW; i++)
        if (sink->files[i])
            settle(sink, sink->files[i], TREE_REFUSED, NULL);
}

/* --- conflicts with existing entries --- */

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

/* Return NULL, or the reason why the existing entry `state` must not be replaced. */
static const char *conflict(const struct sink *sink, const struct tree_folder *folder,
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

const char *tree_in_the_way(struct sink *sink, const struct tree_folder *folder,
                            const char *name, const struct tree_attributes *own,
                            const struct tree_record *link, struct stat *state)
{
    *state = (struct stat){0};
    if (sink->many) /* another source may be placing an entry of that name */
        tree_file_await(sink);
    if (fstatat(folder->fd, name, state, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? NULL : strerror(errno);
    tree_file_await(sink); /* so that all placed files are in `made` */
    return conflict(sink, folder, name, own, link, state);
}

/* --- names of complete files --- */

static void placed(struct sink *sink, struct tree_file *file, struct tree_lost lost,
                   const struct stat *state)
{
    tree_sink_not_kept(sink, file->folder, file->name, lost);
    sink->count++;
    settle(sink, file, TREE_PLACED, state);
}

void tree_file_begin_part(struct sink *sink, struct tree_file *file)
{
    char *why = NULL;
    file->state = FILE_IN_PART;
    file->fd = part_open(file->folder->fd, file->name, &file->attributes, file->size, &why);
    if (file->fd < 0)
        tree_file_give_up(sink, file, why);
    free(why);
}

/* Rename the part file to its final name. */
static void place_part(struct sink *sink, struct tree_file *file)
{
    const struct tree_folder *folder = file->folder;
    struct stat state;
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
    tree_file_begin_part(sink, file);
    if (file->state == FILE_IN_PART &&
        part_write(file->fd, file->content.data, file->content.length, 0) < 0)
        tree_file_give_up(sink, file, strerror(errno));
    if (file->state == FILE_NOWHERE)
        settle(sink, file, TREE_REFUSED, NULL);
    else
        place_part(sink, file);
}

/* --- requests --- */

int tree_file_open_there(const struct tree_file *file)
{
    return open_below(file->folder->fd, file->name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

void tree_file_have(struct sink *sink, struct tree_file *file, const struct stat *state)
{
    const struct tree_attributes *to = &file->attributes, is = tree_attributes_of(state);
    sink->had++;
    if (is.mode != (to->mode & 0777) || is.mtime_ns != to->mtime_ns) {
        int fd = tree_file_open_there(file);
        struct tree_lost lost = {"mode", errno};
        if (fd >= 0)
            lost = tree_keep(fd, to);
        tree_sink_not_kept(sink, file->folder, file->name, lost);
        shut(&fd);
    }
    settle(sink, file, TREE_HAVE, state);
}

/* True for file systems known to store files uncompressed. */
static bool is_uncompressed(long type)
{
    return type == EXT4_SUPER_MAGIC || type == XFS_SUPER_MAGIC || type == TMPFS_MAGIC ||
           type == MSDOS_SUPER_MAGIC || type == EXFAT_SUPER_MAGIC;
}

/*
 * Return NULL, or the reason why the disk certainly lacks room for the file. Otherwise a full disk
 * is noticed when the file is written.
 */
static char *no_room(const struct tree_file *file)
{
    struct statfs disk;
    uint64_t needs = file->room < file->size ? file->room : file->size;
    if (needs < PART_LEAST || fstatfs(file->folder->fd, &disk) < 0 ||
        !is_uncompressed((long)disk.f_type))
        return NULL;
    uint64_t has = (uint64_t)disk.f_bavail * (uint64_t)disk.f_frsize;
    needs = needs > file->from ? needs - file->from : 0;
    return needs <= has ? NULL
                        : text_of("needs %llu bytes more on the disk, which has %llu: "
                                  "make room and start the copy again",
                                  (unsigned long long)needs, (unsigned long long)has);
}

/* Request the body of a file that may be created or replaced, if it is needed. */
static void ask(struct sink *sink, struct tree_file *file)
{
    const struct stat *state = &file->stat;
    bool by_content = sink->options->checksum;
    char *why = NULL;
    file->state = FILE_ASKED;
    file->replaces = state->st_ino;
    bool same = S_ISREG(state->st_mode) && (uint64_t)state->st_size == file->size;
    bool same_time = tree_attributes_of(state).mtime_ns == file->attributes.mtime_ns;
    if (same && (by_content ? !file->size : same_time))
        return tree_file_have(sink, file, state);
    if (same && by_content) {
        file->state = FILE_COMPARED;
        file->from = file->size;
    } else {
        if (file->size >= PART_LEAST) {
            file->fd = part_resume(file->folder->fd, file->name, &file->attributes,
                                   file->size, &file->from);
            shut(&file->fd); /* opened and checked again when the body arrives */
        }
        why = no_room(file);
    }
    if (why)
        tree_file_refuse(sink, file, why);
    else
        tree_file_answer(sink, file, TREE_SEND, file->from);
    free(why);
}

/* Go on with a file whose existing entry a thread has looked up. */
static void found(struct sink *sink, struct tree_file *file)
{
    const char *why = file->error ? strerror(file->error) : NULL;
    if (!why && file->stat.st_ino)
        why = conflict(sink, file->folder, file->name, &file->attributes, NULL, &file->stat);
    if (why)
        tree_file_refuse(sink, file, why);
    else
        ask(sink, file);
}

/* Go on with a file that comes back from a thread. */
static void go_on(struct sink *sink, struct tree_file *file)
{
    if (file->state == FILE_SOUGHT)
        found(sink, file);
    else if (file->error == ENOTSUP || file->error == EEXIST)
        place_as_part(sink, file);
    else if (file->error)
        tree_file_refuse(sink, file, strerror(file->error));
    else
        placed(sink, file, file->lost, &file->stat);
}

static void take_back(struct sink *sink, bool waits)
{
    struct tree_file *file;
    while ((file = tree_crew_next(&sink->crew, &sink->made, waits)))
        go_on(sink, file);
}

void tree_file_await(struct sink *sink)
{
    tree_crew_flush(&sink->crew);
    take_back(sink, true);
}

void tree_file_place(struct sink *sink, struct tree_file *file)
{
    if (file->state == FILE_IN_PART)
        return place_part(sink, file);
    if (file->replaces || !file->folder->up) /* a cut copy may have left a part file */
        return place_as_part(sink, file);
    while (tree_crew_full(&sink->crew))
        go_on(sink, tree_crew_next(&sink->crew, &sink->made, true));
    tree_crew_write(&sink->crew, file);
}

const char *tree_file_take(struct sink *sink, const struct tree_record *record)
{
    struct tree_folder *folder = sink->in;
    if (sink->files[sink->next % TREE_WINDOW])
        return "more files than it may have unanswered";
    const char *name = tree_sink_name(sink, record), *why = NULL;
    size_t length = strlen(name) + 1;
    struct tree_file *file = allocated(malloc(sizeof *file + length));
    *file = (struct tree_file){.number = sink->next++, .size = record->size,
                               .room = record->room, .folder = folder, .fd = -1,
                               .attributes = record->attributes};
    memcpy(file->name, name, length);
    sink->files[file->number % TREE_WINDOW] = file;
    folder->uses++;
    bool unknown = folder->fd >= 0 && !folder->made; /* a new folder has no entry yet */
    if (unknown && !sink->many) {
        if (tree_crew_seek(&sink->crew, file))
            take_back(sink, false);
        return NULL;
    }
    if (unknown)
        why = tree_in_the_way(sink, folder, name, &file->attributes, NULL, &file->stat);
    if (why || folder->fd < 0)
        tree_file_refuse(sink, file, why);
    else
        ask(sink, file);
    return NULL;
}
