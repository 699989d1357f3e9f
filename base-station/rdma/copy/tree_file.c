/* The files that a sink makes: what it asks for, and what becomes of their bodies. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "descriptors.h"
#include "tree_part.h"
#include "tree_sink.h"

enum {
    HELD_MOST = 64, /* parts that are open from the answer to their body */
    DUE_MOST = 512, /* answers: with more the source may have to wait for them */
    BUSY_MOST = 256, /* files that the threads have */
};

int tree_file_answers(struct sink *sink)
{
    int result = sink->run.count ? tree_write(&sink->line, &sink->run) : 0;
    sink->run.count = 0;
    return result;
}

static int answer(struct sink *sink, uint64_t number, enum tree_verdict verdict,
                  uint64_t from)
{
    struct tree_record *run = &sink->run;
    if (run->count && run->verdict == verdict && !from && !run->from &&
        run->number + run->count == number) {
        run->count++;
    } else {
        if (tree_file_answers(sink) < 0)
            return -1;
        *run = (struct tree_record){.kind = TREE_ANSWER, .number = number};
        run->count = 1;
        run->verdict = verdict;
        run->from = from;
    }
    if (++sink->due < DUE_MOST)
        return 0;
    sink->due = 0;
    return tree_file_answers(sink) < 0 ? -1 : tree_flush(&sink->line);
}

/* A job is over; `state` is that of the file, NULL where there is none. */
static int settle(struct sink *sink, struct job *job, enum tree_verdict verdict,
                  const struct stat *state)
{
    int result = answer(sink, job->number, verdict, 0);
    shut(&job->fd);
    if (state)
        tree_sink_remember(sink, job->folder, job->name, state);
    if (job->links > 1 && sink->options->hard_links && !sink->cut)
        tree_links_settle(&sink->links, job->number, sink->base.fd, state, &sink->errors);
    tree_xattr_close(&job->xattrs);
    bytes_close(&job->small.content);
    sink->jobs[job->number % TREE_WINDOW] = NULL;
    tree_sink_leave(sink, job->folder);
    free(job);
    return result;
}

static int refuse(struct sink *sink, struct job *job, const char *why)
{
    if (why)
        tree_sink_complain(sink, job->folder, job->name, why);
    return settle(sink, job, TREE_REFUSED, NULL);
}

static void keep_attributes(struct sink *sink, const struct job *job, int fd)
{
    int error = 0;
    const char *lost =
        tree_keep_attributes(fd, &job->attributes, job->xattrs, sink->options, &error);
    if (lost)
        tree_sink_not_kept(sink, job->folder, job->name, lost, error);
}

/* The content is there already; the rest of it may not be. */
static int have(struct sink *sink, struct job *job, const struct stat *state)
{
    const struct tree_attributes *to = &job->attributes;
    struct tree_attributes is;
    bool archive = sink->options->archive;
    tree_attributes_of(&is, state);
    sink->had++;
    bool same = is.mode == (to->mode & (archive ? 07777 : 0777)) &&
                is.mtime_ns == to->mtime_ns &&
                (!archive || (is.uid == to->uid && is.gid == to->gid)) &&
                !sink->options->xattrs && !sink->options->acls;
    if (!same && !sink->options->dry_run) {
        int fd = open_below(job->folder->fd, job->name,
                            O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
        if (fd >= 0)
            keep_attributes(sink, job, fd);
        else
            tree_sink_not_kept(sink, job->folder, job->name, "mode", errno);
        shut(&fd);
    }
    return settle(sink, job, TREE_HAVE, state);
}

/* NULL, or why there is no room for the file. */
static char *no_room(const struct job *job, uint64_t needs)
{
    struct statvfs disk;
    if (needs < PART_LEAST || fstatvfs(job->folder->fd, &disk) < 0)
        return NULL;
    uint64_t has = (uint64_t)disk.f_bavail * disk.f_frsize;
    needs = needs > job->from ? needs - job->from : 0;
    return needs <= has ? NULL
                        : text_of("needs %llu bytes more on the disk, which has %llu: "
                                  "make room and start the copy again",
                                  (unsigned long long)needs, (unsigned long long)has);
}

/* What is asked for, of a file that nothing is in the way of. */
static int ask(struct sink *sink, struct job *job, const struct stat *state,
               uint64_t room)
{
    struct tree_attributes is;
    tree_attributes_of(&is, state);
    job->replaces = state->st_ino;
    if (S_ISREG(state->st_mode) && (uint64_t)state->st_size == job->size) {
        job->sum = sink->options->checksum;
        if (!job->sum && is.mtime_ns == job->attributes.mtime_ns)
            return have(sink, job, state);
        if (job->sum)
            return answer(sink, job->number, TREE_ASK_SUM, 0);
    }
    if (sink->options->dry_run)
        return answer(sink, job->number, TREE_SEND, 0);
    if (job->size >= PART_LEAST && sink->held < HELD_MOST) {
        job->fd = part_resume(job->folder->fd, job->name, &job->attributes, job->size,
                              &job->from);
        sink->held += job->fd >= 0;
    }
    char *why = no_room(job, room < job->size ? room : job->size);
    if (!why)
        return answer(sink, job->number, TREE_SEND, job->from);
    sink->held -= job->fd >= 0;
    int result = refuse(sink, job, why);
    free(why);
    return result;
}

int tree_file_take(struct sink *sink, const struct tree_record *record)
{
    struct stat state = {0};
    if (sink->jobs[sink->next % TREE_WINDOW])
        return tree_sink_refuse("more files than it may have unanswered");
    const char *name = tree_sink_name(sink, record);
    size_t length = strlen(name) + 1;
    struct job *job = allocated(malloc(sizeof *job + length));
    *job = (struct job){.number = sink->next++, .size = record->size,
                        .links = record->links, .folder = sink->in,
                        .attributes = record->attributes, .xattrs = sink->xattrs, .fd = -1};
    sink->xattrs = NULL;
    memcpy(job->name, name, length);
    sink->jobs[job->number % TREE_WINDOW] = job;
    sink->in->uses++;
    if (job->links > 1 && sink->options->hard_links)
        tree_links_add(&sink->links, job->number, sink->in, name);
    if (sink->in->absent)
        return answer(sink, job->number, TREE_SEND, 0);
    if (sink->in->fd < 0)
        return refuse(sink, job, NULL);
    const char *why = NULL; /* of what comes into it meanwhile the thread hears */
    if (!sink->in->made)
        why = tree_sink_in_the_way(sink, sink->in, name, &job->attributes, NULL, &state);
    return why ? refuse(sink, job, why) : ask(sink, job, &state, record->room);
}

int tree_file_sum(struct sink *sink, const struct tree_record *record)
{
    struct job *job = sink->jobs[record->number % TREE_WINDOW];
    uint8_t own[TREE_HASH_BYTES];
    struct stat state;
    if (!job || job->number != record->number || !job->sum)
        return tree_sink_refuse("a sum of a file that was not asked for");
    int fd = open_below(job->folder->fd, job->name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    tree_hash_begin(&sink->hash);
    bool same = fd >= 0 && fstat(fd, &state) == 0 && S_ISREG(state.st_mode) &&
                (uint64_t)state.st_size == job->size &&
                tree_hash_file(&sink->hash, fd, job->size) == 0;
    if (same) {
        tree_hash_end(&sink->hash, own);
        same = memcmp(own, record->hash, sizeof own) == 0;
    }
    shut(&fd);
    job->sum = false;
    return same ? have(sink, job, &state) : answer(sink, job->number, TREE_SEND, 0);
}

/* Gives up the file being received: what is still to come of it is passed over. */
static void give_up(struct sink *sink, const char *why)
{
    struct job *job = sink->body;
    if (why)
        tree_sink_complain(sink, job->folder, job->name, why);
    if (job->fd >= 0)
        part_drop(job->folder->fd, job->name);
    shut(&job->fd);
    sink->body_at = BODY_NOWHERE;
}

static void begin_part(struct sink *sink)
{
    struct job *job = sink->body;
    char *why = NULL;
    sink->body_at = BODY_IN_PART;
    job->fd = part_open(job->folder->fd, job->name, &job->attributes, sink->body_size,
                        &why);
    if (job->fd < 0)
        give_up(sink, why);
    free(why);
}

int tree_file_body(struct sink *sink, const struct tree_record *record)
{
    struct job *job = sink->jobs[record->body_number % TREE_WINDOW];
    if (!job || job->number != record->body_number || job->sum || job->small.name ||
        sink->options->dry_run ||
        (record->body_from && (record->body_from != job->from || job->fd < 0)))
        return tree_sink_refuse("a body that was not asked for");
    sink->body = job;
    sink->body_size = record->body_size;
    sink->body_at = record->body_from ? BODY_IN_PART : BODY_BEGUN;
    sink->held -= job->fd >= 0 && !job->tries;
    tree_hash_begin(&sink->hash);
    if (!record->body_from) /* it is another file by now, or came damaged */
        shut(&job->fd);
    else if (tree_hash_file(&sink->hash, job->fd, record->body_from) < 0)
        give_up(sink, strerror(errno));
    job->attributes = record->attributes;
    return 0;
}

int tree_file_data(struct sink *sink, const struct tree_record *record)
{
    struct job *job = sink->body;
    uint64_t end = record->offset + record->length;
    if (record->offset < sink->hash.at || end > sink->body_size)
        return tree_sink_refuse("data where it does not belong");
    tree_hash_zeros(&sink->hash, record->offset);
    tree_hash_add(&sink->hash, record->bytes, record->length);
    if (sink->body_at == BODY_BEGUN && record->length == sink->body_size &&
        !sink->options->verify) {
        sink->body_at = BODY_IN_MEMORY;
        job->small.content.length = 0;
        bytes_add(&job->small.content, record->bytes, record->length);
    }
    if (sink->body_at == BODY_BEGUN)
        begin_part(sink);
    if (sink->body_at == BODY_IN_PART &&
        part_write(job->fd, record->bytes, record->length, record->offset) < 0)
        give_up(sink, strerror(errno));
    if (sink->body_at != BODY_NOWHERE)
        sink->bytes += record->length;
    return 0;
}

/* Reads the file again, from the disk where the kernel lets go of its pages. */
static bool verified(struct sink *sink, const struct job *job, const uint8_t *hash)
{
    uint8_t own[TREE_HASH_BYTES];
    fdatasync(job->fd);
    posix_fadvise(job->fd, 0, 0, POSIX_FADV_DONTNEED);
    tree_hash_begin(&sink->hash);
    if (tree_hash_file(&sink->hash, job->fd, sink->body_size) < 0)
        return false;
    tree_hash_end(&sink->hash, own);
    return memcmp(own, hash, sizeof own) == 0;
}

/* Gives the part its name. NULL, or why not. */
static const char *publish(struct sink *sink, struct job *job, struct stat *state)
{
    const struct tree_folder *folder = job->folder;
    tree_sink_one_by_one(sink);
    const char *why =
        tree_sink_in_the_way(sink, folder, job->name, &job->attributes, NULL, state);
    if (why)
        return why;
    if (!sink->options->no_sync && sink->body_size >= PART_LEAST && fsync(job->fd) < 0)
        return strerror(errno);
    keep_attributes(sink, job, job->fd);
    if (part_publish(folder->fd, job->name, sink->body_size) < 0 ||
        fstat(job->fd, state) < 0)
        return strerror(errno);
    return NULL;
}

static int end_part(struct sink *sink, struct job *job)
{
    struct stat state;
    const char *why = sink->body_at == BODY_IN_PART ? publish(sink, job, &state) : NULL;
    if (why)
        give_up(sink, why);
    sink->body = NULL;
    if (sink->body_at == BODY_NOWHERE)
        return settle(sink, job, TREE_REFUSED, NULL);
    sink->files++;
    return settle(sink, job, TREE_PLACED, &state);
}

/* As a part it takes the place of what has the name. */
static int end_small_part(struct sink *sink, struct job *job)
{
    const struct bytes *content = &job->small.content;
    sink->body = job;
    sink->body_size = content->length;
    begin_part(sink);
    if (sink->body_at == BODY_IN_PART &&
        part_write(job->fd, content->data, content->length, 0) < 0)
        give_up(sink, strerror(errno));
    return end_part(sink, job);
}

/* What a thread was given is done, one way or the other. */
static int end_written(struct sink *sink, struct tree_small *small)
{
    struct job *job = (struct job *)small; /* its first member */
    if (small->error == ENOTSUP || small->error == EEXIST)
        return end_small_part(sink, job);
    if (small->error)
        return refuse(sink, job, strerror(small->error));
    if (small->lost)
        tree_sink_not_kept(sink, job->folder, job->name, small->lost, small->lost_error);
    sink->files++;
    return settle(sink, job, TREE_PLACED, &small->state);
}

int tree_file_written(struct sink *sink, bool waits)
{
    struct tree_small *small;
    int result = 0;
    while ((small = tree_crew_take(&sink->crew, waits))) {
        if (end_written(sink, small) < 0)
            return -1;
        result = 1;
    }
    return result;
}

/* A small file that replaces nothing, nor a part that was left, needs none to go on from:
 * it gets its name at once. */
static int end_small(struct sink *sink, struct job *job)
{
    if (job->replaces || job->folder->had_parts)
        return end_small_part(sink, job);
    sink->body = NULL;
    job->small.folder = job->folder->fd;
    job->small.name = job->name;
    job->small.attributes = &job->attributes;
    job->small.xattrs = job->xattrs;
    tree_crew_give(&sink->crew, &job->small);
    int result = tree_file_written(sink, false);
    while (result >= 0 && sink->crew.busy >= BUSY_MOST)
        result = end_written(sink, tree_crew_take(&sink->crew, true));
    return result < 0 ? -1 : 0;
}

static int once_more(struct sink *sink, struct job *job)
{
    bool last = ++job->tries >= TREE_TRIES;
    if (last)
        give_up(sink, "arrived damaged each time: what was there before stays");
    sink->body = NULL;
    if (last)
        return settle(sink, job, TREE_REFUSED, NULL);
    char *path = tree_folder_path(job->folder, job->name);
    tree_say(path, "arrived damaged: asked for again");
    free(path);
    return answer(sink, job->number, TREE_AGAIN, 0);
}

int tree_file_whole(struct sink *sink, const struct tree_record *record)
{
    struct job *job = sink->body;
    uint8_t own[TREE_HASH_BYTES];
    bool hole = sink->hash.at < sink->body_size; /* at its end */
    if (sink->body_at == BODY_BEGUN && sink->body_size)
        begin_part(sink);
    else if (sink->body_at == BODY_BEGUN)
        sink->body_at = BODY_IN_MEMORY;
    tree_hash_zeros(&sink->hash, sink->body_size);
    tree_hash_end(&sink->hash, own);
    bool part = sink->body_at == BODY_IN_PART;
    if (!record->sound)
        give_up(sink, NULL); /* the source has said why */
    else if (part && hole && ftruncate(job->fd, (off_t)sink->body_size) < 0)
        give_up(sink, strerror(errno));
    else if (sink->body_at != BODY_NOWHERE &&
             (memcmp(own, record->hash, sizeof own) != 0 ||
              (part && sink->options->verify && !verified(sink, job, record->hash))))
        return once_more(sink, job);
    return sink->body_at == BODY_IN_MEMORY ? end_small(sink, job) : end_part(sink, job);
}

void tree_file_drop(struct sink *sink)
{
    struct job *body = sink->body;
    if (body && body->fd >= 0 && sink->body_size < PART_LEAST)
        part_drop(body->folder->fd, body->name);
    sink->body = NULL;
    while (tree_file_written(sink, true) > 0)
        ;
    for (size_t i = 0; i < TREE_WINDOW; i++)
        if (sink->jobs[i])
            settle(sink, sink->jobs[i], TREE_REFUSED, NULL);
}
