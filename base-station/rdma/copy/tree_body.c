/* Bodies of files that arrive at a sink: see tree_sink.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "tree_part.h"
#include "tree_sink.h"

const char *tree_body_take(struct sink *sink, const struct tree_record *record)
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
        file->fd = tree_file_open_there(file);
    } else {
        file->fd = part_resume(file->folder->fd, file->name, &file->attributes, file->size,
                               &has);
        file->state = has == from ? FILE_IN_PART : FILE_COMPARED;
    }
    if (tree_hash_file(&sink->hash, file->fd, from, NULL, NULL) < 0 &&
        file->state == FILE_IN_PART)
        tree_file_give_up(sink, file, strerror(errno));
    return NULL;
}

const char *tree_body_data(struct sink *sink, const struct tree_record *record)
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
        tree_file_begin_part(sink, file);
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
        tree_file_have(sink, file, &state);
    else
        tree_file_answer(sink, file, TREE_SEND, 0);
}

void tree_body_whole(struct sink *sink, const struct tree_record *record)
{
    struct tree_file *file = sink->body;
    uint8_t own[TREE_HASH_BYTES];
    bool hole = sink->hash.at < file->size; /* at its end */
    tree_hash_zeros(&sink->hash, file->size);
    tree_hash_end(&sink->hash, own);
    bool same = memcmp(own, record->hash, sizeof own) == 0;
    sink->body = NULL;
    if (file->state == FILE_BEGUN && file->size)
        tree_file_begin_part(sink, file);
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
        tree_file_place(sink, file);
}

void tree_body_drop(struct sink *sink)
{
    struct tree_file *file = sink->body;
    if (file && file->state == FILE_IN_PART && file->size < PART_LEAST)
        part_drop(file->folder->fd, file->name);
    sink->body = NULL;
}
