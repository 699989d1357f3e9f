/* Files of a sink: requests for bodies, and their reception. */
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

static int open_there(const struct tree_file *file)
{
    return open_below(file->folder->fd, file->name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

/* Keep the existing content and update the attributes that differ. */
static void have(struct sink *sink, struct tree_file *file, const struct stat *state)
{
    const struct tree_attributes *to = &file->attributes;
    struct tree_attributes is;
    tree_attributes_of(&is, state);
    sink->had++;
    if (is.mode != (to->mode & 0777) || is.mtime_ns != to->mtime_ns) {
        int fd = open_there(file);
        struct tree_lost lost = {"mode", errno};
        if (fd >= 0)
            lost = tree_keep(fd, to);
        tree_sink_not_kept(sink, file->folder, file->name, lost);
        shut(&fd);
    }
    tree_file_settle(sink, file, TREE_HAVE, state);
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
static char *no_room(const struct tree_file *file, uint64_t needs)
{
    struct statfs disk;
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

static int resume(const struct tree_file *file, uint64_t *from)
{
    return part_resume(file->folder->fd, file->name, &file->attributes, file->size, from);
}

/* Request the body of a file that may be created or replaced, if it is needed. */
static void ask(struct sink *sink, struct tree_file *file)
{
    const struct rdcp_options *options = sink->options;
    const struct stat *state = &file->stat;
    uint64_t room = file->room;
    struct tree_attributes is;
    tree_attributes_of(&is, state);
    file->replaces = state->st_ino;
    bool same = S_ISREG(state->st_mode) && (uint64_t)state->st_size == file->size;
    bool same_time = is.mtime_ns == file->attributes.mtime_ns;
    if (same && (options->checksum ? !file->size : same_time))
        return have(sink, file, state);
    if (same && options->checksum) {
        file->state = FILE_COMPARED;
        file->from = file->size;
    } else if (file->size >= PART_LEAST) {
        file->fd = resume(file, &file->from);
        shut(&file->fd); /* opened and checked again when the body arrives */
    }
    char *why = file->state == FILE_COMPARED
                    ? NULL : no_room(file, room < file->size ? room : file->size);
    if (!why)
        return tree_file_answer(sink, file, TREE_SEND, file->from);
    tree_file_refuse(sink, file, why);
    free(why);
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
                               .room = record->room, .folder = folder,
                               .state = FILE_ASKED, .attributes = record->attributes,
                               .fd = -1};
    memcpy(file->name, name, length);
    sink->files[file->number % TREE_WINDOW] = file;
    folder->uses++;
    if (folder->fd < 0)
        tree_file_refuse(sink, file, NULL);
    else if (folder->made) /* the entry cannot exist yet, so the thread skips the lookup */
        ask(sink, file);
    else if (!sink->many)
        tree_place_seek(sink, file);
    else if ((why = tree_in_the_way(sink, folder, name, &file->attributes, NULL,
                                    &file->stat)))
        tree_file_refuse(sink, file, why); /* another source may have placed that name */
    else
        ask(sink, file);
    return NULL;
}

void tree_file_sought(struct sink *sink, struct tree_file *file)
{
    const char *why = file->error ? strerror(file->error) : NULL;
    file->state = FILE_ASKED;
    if (!why && file->stat.st_ino)
        why = tree_found_in_the_way(sink, file->folder, file->name, &file->attributes, NULL,
                                    &file->stat);
    if (why)
        tree_file_refuse(sink, file, why);
    else
        ask(sink, file);
}

const char *tree_file_body(struct sink *sink, const struct tree_record *record)
{
    uint64_t from = record->body_from, has = 0;
    struct tree_file **place = &sink->files[record->body_number % TREE_WINDOW];
    if (*place && (*place)->state == FILE_SOUGHT)
        tree_place_all(sink);
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
    bool part = file->state != FILE_COMPARED;
    file->fd = part ? resume(file, &has) : open_there(file);
    file->state = part && has == from ? FILE_IN_PART : FILE_COMPARED;
    if (tree_hash_file(&sink->hash, file->fd, from, NULL, NULL) < 0 &&
        file->state == FILE_IN_PART)
        tree_file_give_up(sink, file, strerror(errno));
    return NULL;
}

const char *tree_file_data(struct sink *sink, const struct tree_record *record)
{
    struct tree_file *file = sink->body;
    if (record->offset < sink->hash.at || record->offset + record->length > file->size)
        return "data where it does not belong";
    tree_hash_zeros(&sink->hash, record->offset);
    tree_hash_add(&sink->hash, record->bytes, record->length);
    if (file->state == FILE_BEGUN && record->length == file->size &&
        !sink->options->verify) {
        file->state = FILE_IN_MEMORY;
        file->content.length = 0;
        bytes_add(&file->content, record->bytes, record->length);
    }
    if (file->state == FILE_BEGUN)
        tree_place_begin(sink, file);
    if (file->state == FILE_IN_PART &&
        part_write(file->fd, record->bytes, record->length, record->offset) < 0)
        tree_file_give_up(sink, file, strerror(errno));
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
        return tree_file_refuse(
            sink, file, "arrived damaged each time: what was there before stays");
    file->from = 0;
    char *path = tree_folder_path(file->folder, file->name);
    tree_say(path, "arrived damaged: asked for again");
    free(path);
    tree_file_answer(sink, file, TREE_AGAIN, 0);
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
        tree_file_answer(sink, file, TREE_SEND, 0);
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
        tree_place_begin(sink, file);
    else if (file->state == FILE_BEGUN)
        file->state = FILE_IN_MEMORY;
    if (file->state == FILE_IN_PART && hole && ftruncate(file->fd, (off_t)file->size) < 0)
        tree_file_give_up(sink, file, strerror(errno));
    if (record->kind == TREE_BROKEN && file->state == FILE_COMPARED)
        shut(&file->fd);
    if (record->kind == TREE_BROKEN || file->state == FILE_NOWHERE)
        tree_file_refuse(sink, file, NULL); /* the error has been printed */
    else if (file->state == FILE_COMPARED)
        compared(sink, file, same);
    else if (!same || (file->state == FILE_IN_PART && sink->options->verify &&
                       !verified(sink, file, record->hash)))
        once_more(sink, file);
    else
        tree_place(sink, file);
}

void tree_file_drop(struct sink *sink)
{
    struct tree_file *body = sink->body;
    if (body && body->state == FILE_IN_PART && body->size < PART_LEAST)
        part_drop(body->folder->fd, body->name);
    sink->body = NULL;
    tree_place_all(sink);
    for (size_t i = 0; i < TREE_WINDOW; i++)
        if (sink->files[i])
            tree_file_settle(sink, sink->files[i], TREE_REFUSED, NULL);
}
