/* Answers of the sink, and the bodies it requests: see tree_source.h. */
#include "tree_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"

char *source_path(const struct source_folder *folder, const char *name)
{
    if (folder)
        return text_of("%s%s%s", folder->path, folder->path[0] ? "/" : "", name);
    char *own = tree_name(name);
    if (*own)
        return own;
    free(own);
    return allocated(strdup(name));
}

bool source_stopped(const struct source *source)
{
    return source->line.lost || source->anew;
}

bool source_meet(struct source *source, bool waits)
{
    struct tree_record record = {0};
    const char *why = "";
    if (source->met || source_stopped(source))
        return !source_stopped(source);
    int got = tree_next(&source->line, &record, waits, &why);
    if (got == 0 && !waits && !source->line.ended)
        return false;
    if (got > 0 && record.kind != TREE_TARGET) {
        got = -1;
        why = "they do not begin with the target";
    }
    if (got < 0)
        fprintf(stderr, "rdcp: the answers: %s\n", why);
    source->line.lost |= got <= 0;
    source->line.held = false;
    source->met = true;
    source->target.st_dev = record.device;
    source->target.st_ino = record.inode;
    source->anew = record.inode && tree_made_find(&source->ahead, &source->target);
    tree_progress_start(&source->progress, source->options);
    return !source_stopped(source);
}

void source_complain(struct source *source, const struct source_folder *folder,
                     const char *name, const char *what)
{
    if (!source_meet(source, true))
        return; /* the stream is lost, or the second walk reports the error again */
    char *path = source_path(folder, name);
    tree_progress_clear(&source->progress);
    tree_error(&source->errors, path, what);
    free(path);
}

int source_fd(const struct source_folder *folder)
{
    return folder ? folder->fd : AT_FDCWD;
}

int source_open(const struct source_folder *folder, const char *name, bool follow, int flags)
{
    return openat(source_fd(folder), name,
                  O_RDONLY | O_CLOEXEC | flags | (follow ? 0 : O_NOFOLLOW));
}

void source_leave(struct source *source, struct source_folder *folder)
{
    if (!folder || --folder->uses)
        return;
    close(folder->fd);
    free(folder->path);
    free(folder);
    source->folders--;
}

static void drop(struct source *source, struct source_job *job)
{
    source_leave(source, job->folder);
    free(job->name);
    *job = (struct source_job){0};
}

static void settle(struct source *source, struct source_job *job)
{
    source->progress.done += job->sent ? 0 : job->size;
    tree_progress_show(&source->progress, 0, false);
    drop(source, job);
    while (source->oldest < source->next && !source->jobs[source->oldest % TREE_WINDOW].name)
        source->oldest++;
}

static bool send_piece(void *argument, uint64_t at, const uint8_t *bytes, size_t length)
{
    struct source *source = argument;
    struct tree_record data = {.kind = TREE_DATA, .length = (uint32_t)length,
                               .bytes = bytes};
    data.offset = at;
    tree_write(&source->line, &data);
    source->progress.moved += length;
    tree_progress_show(&source->progress, at + length, false);
    return !source->line.lost;
}

static bool same_time(const struct timespec *one, const struct timespec *other)
{
    return one->tv_sec == other->tv_sec && one->tv_nsec == other->tv_nsec;
}

static bool unchanged(int fd, const struct stat *before)
{
    struct stat now;
    return fstat(fd, &now) == 0 && now.st_size == before->st_size &&
           same_time(&now.st_mtim, &before->st_mtim) &&
           same_time(&now.st_ctim, &before->st_ctim);
}

/* Describe the file in `body`. Resume at `from` only if the file is still as announced; otherwise
 * send all of it. Return NULL or the error. */
static const char *describe(const struct source_job *job, int fd, uint64_t from,
                            struct stat *state, struct tree_record *body)
{
    const struct tree_attributes *is = &body->attributes;
    if (fd < 0 || fstat(fd, state) < 0)
        return strerror(errno);
    if (!S_ISREG(state->st_mode))
        return "it changed before it was read";
    body->attributes = tree_attributes_of(state);
    body->body_size = (uint64_t)state->st_size;
    if (body->body_size == job->size && is->inode == job->inode &&
        is->mtime_ns == job->mtime_ns && from <= job->size)
        body->body_from = from;
    return NULL;
}

static const char *send_content(struct source *source, int fd, const struct stat *state,
                                uint64_t from)
{
    uint64_t size = (uint64_t)state->st_size;
    if (size > TREE_DATA_MOST)
        posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    tree_hash_begin(&source->hash);
    bool read = tree_hash_file(&source->hash, fd, from, NULL, NULL) == 0 &&
                tree_hash_file(&source->hash, fd, size, send_piece, source) == 0;
    const char *why = read ? NULL : strerror(errno);
    return unchanged(fd, state) ? why : "it changed while it was read";
}

static void send_body(struct source *source, struct source_job *job, uint64_t number, uint64_t from)
{
    struct tree_record body = {.kind = TREE_BODY};
    struct tree_record whole = {.kind = TREE_WHOLE};
    struct stat state;
    int fd = source_open(job->folder, job->name, !job->folder, O_NONBLOCK | O_NOCTTY);
    const char *why = describe(job, fd, from, &state, &body);
    body.body_number = number;
    tree_write(&source->line, &body);
    source->progress.done -= job->sent ? job->size : 0;
    if (!why)
        why = send_content(source, fd, &state, body.body_from);
    if (!why)
        tree_hash_end(&source->hash, whole.hash);
    else if (!source->line.lost)
        source_complain(source, job->folder, job->name, why);
    whole.kind = why ? TREE_BROKEN : TREE_WHOLE;
    tree_write(&source->line, &whole);
    job->sent = true;
    source->progress.done += job->size;
    shut(&fd);
}

/* Send each requested body, or settle each file that has its final answer. */
static void take_answer(struct source *source, const struct tree_record *record)
{
    bool asked = record->verdict == TREE_SEND || record->verdict == TREE_AGAIN;
    uint64_t number = record->number, from = record->from;
    for (uint64_t left = record->count; left && !source->line.lost; left--, number++) {
        struct source_job *job = &source->jobs[number % TREE_WINDOW];
        if (number < source->oldest || number >= source->next || !job->name ||
            !record->verdict || record->verdict > TREE_REFUSED) {
            fputs("rdcp: the stream: an answer to what was not asked\n", stderr);
            source->line.lost = true;
        } else if (asked) {
            send_body(source, job, number, from);
        } else {
            settle(source, job);
        }
    }
}

bool source_serve(struct source *source, bool waits)
{
    struct tree_record record = {0};
    const char *why = "";
    if (!source_meet(source, waits))
        return false;
    int got = tree_next(&source->line, &record, waits, &why);
    if (got > 0 && record.kind == TREE_ANSWER) {
        take_answer(source, &record);
        return true;
    }
    if ((got < 0 && !source->line.lost) || (got > 0 && record.kind != TREE_BYE))
        fprintf(stderr, "rdcp: the answers: %s\n",
                got < 0 ? why : "a record of another kind of stream");
    source->line.lost |= got || waits;
    return false;
}

void source_forget(struct source *source)
{
    for (uint64_t i = source->oldest; i < source->next; i++)
        if (source->jobs[i % TREE_WINDOW].name)
            drop(source, &source->jobs[i % TREE_WINDOW]);
    source->next = source->oldest = source->progress.announced = 0;
}
