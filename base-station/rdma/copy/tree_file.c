/* Files of a sink, from their announcement to their final answer: see tree_sink.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "tree_part.h"
#include "tree_sink.h"

/* Limit on files with a queued answer. A higher limit could stall the source; a lower one wakes all
 * processes of the sessions more often. */
enum { DUE_MOST = 4096 };

/* --- answers --- */

void tree_file_answers(struct sink *sink)
{
    if (sink->run.count)
        tree_write(&sink->line, &sink->run);
    sink->run.count = 0;
}

static void answer(struct sink *sink, const struct tree_file *file,
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
    answer(sink, file, verdict, 0);
    if (state)
        tree_made_add(&sink->made, state);
    sink->files[file->number % TREE_WINDOW] = NULL;
    tree_folder_leave(sink, file->folder);
    shut(&file->fd);
    bytes_close(&file->content);
    free(file);
}

/* Give up the file; the rest of its body is discarded. */
static void give_up(struct sink *sink, struct tree_file *file, const char *why)
{
    if (why)
        tree_sink_complain(sink, file->folder, file->name, why);
    if (file->fd >= 0)
        part_drop(file->folder->fd, file->name);
    shut(&file->fd);
    file->state = FILE_NOWHERE;
}

static void refuse(struct sink *sink, struct tree_file *file, const char *why)
{
    give_up(sink, file, why);
    settle(sink, file, TREE_REFUSED, NULL);
}

void tree_file_drop_all(struct sink *sink)
{
    tree_file_await(sink);
    for (size_t i = 0; i < TREE_WINDOW; i++)
        if (sink->files[i])
            settle(sink, sink->files[i], TREE_REFUSED, NULL);
}

/* --- names of complete files --- */

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
    return tree_conflict(sink, folder, name, own, link, state);
}

static void placed(struct sink *sink, struct tree_file *file, struct tree_lost lost,
                   const struct stat *state)
{
    tree_sink_not_kept(sink, file->folder, file->name, lost, &file->attributes);
    sink->count++;
    settle(sink, file, TREE_PLACED, state);
}

static void begin_part(struct sink *sink, struct tree_file *file)
{
    char *why = NULL;
    file->state = FILE_IN_PART;
    file->fd = part_open(file->folder->fd, file->name, &file->attributes, file->size, &why);
    if (file->fd < 0)
        give_up(sink, file, why);
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
        return refuse(sink, file, why);
    struct tree_lost lost = tree_keep(file->fd, &file->attributes);
    if (part_publish(folder->fd, file->name) < 0 || fstat(file->fd, &state) < 0)
        refuse(sink, file, strerror(errno));
    else
        placed(sink, file, lost, &state);
}

/* Place a small file through a part file. */
static void place_as_part(struct sink *sink, struct tree_file *file)
{
    begin_part(sink, file);
    if (file->state == FILE_IN_PART &&
        part_write(file->fd, file->content.data, file->content.length, 0) < 0)
        give_up(sink, file, strerror(errno));
    if (file->state == FILE_NOWHERE)
        settle(sink, file, TREE_REFUSED, NULL);
    else
        place_part(sink, file);
}

/* --- requests --- */

/* Open the existing file of that name for reading. */
static int open_there(const struct tree_file *file)
{
    return open_below(file->folder->fd, file->name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

/* Keep the existing content and update the attributes that differ. */
static void have(struct sink *sink, struct tree_file *file, const struct stat *state)
{
    const struct tree_attributes *to = &file->attributes, is = tree_attributes_of(state);
    sink->had++;
    if (!tree_same_mode(sink, file->folder, &is, to) ||
        !tree_same_time(sink, file->folder, &is, to)) {
        int fd = open_there(file);
        struct tree_lost lost = {"mode", errno};
        if (fd >= 0)
            lost = tree_keep(fd, to);
        tree_sink_not_kept(sink, file->folder, file->name, lost, to);
        shut(&fd);
    }
    settle(sink, file, TREE_HAVE, state);
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
    const struct tree_attributes is = tree_attributes_of(state);
    if (same && (by_content ? !file->size
                            : tree_same_time(sink, file->folder, &is, &file->attributes)))
        return have(sink, file, state);
    if (same && by_content) {
        file->state = FILE_COMPARED;
        file->from = file->size;
    } else {
        if (file->size >= PART_LEAST) {
            file->fd = part_resume(file->folder->fd, file->name, &file->attributes,
                                   file->size, &file->from);
            shut(&file->fd); /* opened and checked again when the body arrives */
        }
        why = tree_no_room(file);
    }
    if (why)
        refuse(sink, file, why);
    else
        answer(sink, file, TREE_SEND, file->from);
    free(why);
}

/* Go on with a file that comes back from a thread, which has looked up its entry or written it. */
static void go_on(struct sink *sink, struct tree_file *file)
{
    bool sought = file->state == FILE_SOUGHT;
    const char *why = file->error ? strerror(file->error) : NULL;
    if (sought && !why && file->stat.st_ino)
        why = tree_conflict(sink, file->folder, file->name, &file->attributes, NULL, &file->stat);
    if (!sought && (file->error == ENOTSUP || file->error == EEXIST))
        place_as_part(sink, file);
    else if (why)
        refuse(sink, file, why);
    else if (sought)
        ask(sink, file);
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

static void place(struct sink *sink, struct tree_file *file)
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
        refuse(sink, file, why);
    else
        ask(sink, file);
    return NULL;
}

/* --- bodies --- */

const char *tree_file_body(struct sink *sink, const struct tree_record *record)
{
    uint64_t from = record->body_from, has = 0;
    struct tree_file **place = &sink->files[record->body_number % TREE_WINDOW];
    if (*place && (*place)->state == FILE_SOUGHT)
        tree_file_await(sink);
    struct tree_file *file = *place; /* NULL: already settled */
    if (!file || file->number != record->body_number || file->state == FILE_GIVEN ||
        (from && from != file->from))
        return "a body that was not asked for";
    sink->body = file;
    file->size = record->body_size;
    file->attributes = record->attributes;
    tree_hash_begin(&sink->hash);
    shut(&file->fd);
    if (!from) { /* the file has changed since, or arrived damaged */
        file->state = FILE_BEGUN;
        return NULL;
    }
    if (file->state == FILE_COMPARED) {
        file->fd = open_there(file);
    } else {
        file->fd = part_resume(file->folder->fd, file->name, &file->attributes, file->size, &has);
        file->state = has == from ? FILE_IN_PART : FILE_COMPARED;
    }
    if (tree_hash_file(&sink->hash, file->fd, from, NULL, NULL) < 0 && file->state == FILE_IN_PART)
        give_up(sink, file, strerror(errno));
    return NULL;
}

const char *tree_file_data(struct sink *sink, const struct tree_record *record)
{
    struct tree_file *file = sink->body;
    if (record->offset < sink->hash.at || record->offset + record->length > file->size)
        return "data where it does not belong";
    tree_hash_zeros(&sink->hash, record->offset);
    tree_hash_add(&sink->hash, record->bytes, record->length);
    if (file->state == FILE_BEGUN && record->length == file->size && !sink->options->verify) {
        file->state = FILE_IN_MEMORY;
        file->content.length = 0;
        bytes_add(&file->content, record->bytes, record->length);
    }
    if (file->state == FILE_BEGUN)
        begin_part(sink, file);
    if (file->state == FILE_IN_PART &&
        part_write(file->fd, record->bytes, record->length, record->offset) < 0)
        give_up(sink, file, strerror(errno));
    if (file->state != FILE_NOWHERE)
        sink->bytes += record->length;
    return NULL;
}

/* Read the file again, from the disk if the kernel drops its cached pages. */
static bool verified(struct sink *sink, const struct tree_file *file, const uint8_t *hash)
{
    uint8_t own[TREE_HASH_BYTES];
    fdatasync(file->fd);
    posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
    tree_hash_begin(&sink->hash);
    bool read = tree_hash_file(&sink->hash, file->fd, file->size, NULL, NULL) == 0;
    tree_hash_end(&sink->hash, own);
    return read && memcmp(own, hash, sizeof own) == 0;
}

static void once_more(struct sink *sink, struct tree_file *file)
{
    if (++file->tries >= TREE_TRIES)
        return refuse(
            sink, file, "arrived damaged each time: what was there before stays");
    file->from = 0;
    char *path = tree_folder_path(file->folder, file->name);
    tree_say(path, "arrived damaged: asked for again");
    free(path);
    answer(sink, file, TREE_AGAIN, 0);
}

/* Handle the result of comparing the existing file. */
static void compared(struct sink *sink, struct tree_file *file, bool same)
{
    struct stat state;
    same = same && fstat(file->fd, &state) == 0;
    shut(&file->fd);
    file->state = FILE_ASKED;
    file->from = 0;
    if (same)
        have(sink, file, &state);
    else
        answer(sink, file, TREE_SEND, 0);
}

void tree_file_whole(struct sink *sink, const struct tree_record *record)
{
    struct tree_file *file = sink->body;
    uint8_t own[TREE_HASH_BYTES];
    bool hole = sink->hash.at < file->size; /* at its end */
    tree_hash_zeros(&sink->hash, file->size);
    tree_hash_end(&sink->hash, own);
    bool same = memcmp(own, record->hash, sizeof own) == 0;
    sink->body = NULL;
    if (file->state == FILE_BEGUN && file->size)
        begin_part(sink, file);
    else if (file->state == FILE_BEGUN)
        file->state = FILE_IN_MEMORY;
    if (file->state == FILE_IN_PART && hole && ftruncate(file->fd, (off_t)file->size) < 0)
        give_up(sink, file, strerror(errno));
    if (record->kind == TREE_BROKEN && file->state == FILE_COMPARED)
        shut(&file->fd);
    if (record->kind == TREE_BROKEN || file->state == FILE_NOWHERE)
        refuse(sink, file, NULL); /* the error has been printed */
    else if (file->state == FILE_COMPARED)
        compared(sink, file, same);
    else if (!same || (file->state == FILE_IN_PART && sink->options->verify &&
                       !verified(sink, file, record->hash)))
        once_more(sink, file);
    else
        place(sink, file);
}

void tree_file_drop_body(struct sink *sink)
{
    struct tree_file *file = sink->body;
    if (file && file->state == FILE_IN_PART && file->size < PART_LEAST)
        part_drop(file->folder->fd, file->name);
    sink->body = NULL;
}
