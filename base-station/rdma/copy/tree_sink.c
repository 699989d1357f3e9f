/* rdcp --serve-sink: makes files and trees below DST from the stream on stdin, and says
 * what it wants of them. Every name is opened in the folder that is open already, through
 * no symbolic link. See tree.h. */
#include "descriptors.h"
#include "tree_sides.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tree_folder.h"
#include "tree_hash.h"
#include "tree_io.h"
#include "tree_part.h"

static const char TAKEN[] = "its name was taken meanwhile";
enum { HELD_MOST = 64 }; /* parts that are open from the answer to their body */

struct job { /* a file that was asked for */
    uint64_t number, size, from, links;
    struct tree_folder *folder;
    struct tree_attributes attributes;
    struct tree_xattr *xattrs;
    int fd; /* of its part, locked; -1: not yet, or given up */
    int tries;
    bool replaces; /* something had its name */
    bool nameless; /* what is at `fd` is no part: it has no name yet */
    bool sum; /* not its body, but its sum is to come */
    char name[TREE_NAME_MOST + 1];
};

struct sink {
    const struct rdcp_options *options;
    const char *target;
    char **asked; /* the sources; what the stream has at its top is called as they are */
    size_t asked_count, asked_at; /* where the last one was found */
    struct tree_line line;
    struct tree_base base;   /* where the names at the top go */
    struct tree_folder top;  /* the same, as a folder */
    struct tree_folder *in;  /* where the stream is */
    int depth;
    struct job *jobs[TREE_WINDOW];
    uint64_t next; /* number of a file */
    struct tree_record run; /* an answer that more files may have */
    struct job *body;       /* the one being received */
    uint64_t body_size;
    struct tree_hash hash;
    struct tree_xattr *xattrs; /* of what comes next */
    size_t held;
    struct tree_made made;
    struct tree_links links;
    struct tree_manifest manifest;
    struct words extra; /* of --delete */
    uint64_t errors, files, bytes, had;
    bool started, ended;
    bool cut; /* the stream ended before its end */
    bool source_here; /* on this machine: what it has may be what stands here */
};

static void complain(struct sink *sink, const struct tree_folder *folder,
                     const char *name, const char *what)
{
    tree_folder_complain(folder, &sink->errors, sink->target, name, what);
}

static int refuse(const char *why)
{
    fprintf(stderr, "rdcp: the stream: %s\n", why);
    return -1;
}

static int answer_run(struct sink *sink)
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
        return 0;
    }
    int result = answer_run(sink);
    run->kind = TREE_ANSWER;
    run->number = number;
    run->count = 1;
    run->verdict = verdict;
    run->from = from;
    return result;
}

static void not_kept(struct sink *sink, const struct tree_folder *folder,
                     const char *name, const char *what, int error)
{
    char text[128];
    snprintf(text, sizeof text, "arrived, but its %s could not be kept: %s", what,
             strerror(error));
    complain(sink, folder, name, text);
}

static void set_attributes(struct sink *sink, int fd, const struct tree_folder *folder,
                           const char *name, const struct tree_attributes *to,
                           const struct tree_xattr *xattrs)
{
    int error = 0;
    const char *lost = tree_keep_attributes(fd, to, xattrs, sink->options, &error);
    if (lost)
        not_kept(sink, folder, name, lost, error);
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
    if (folder->keep == KEEP_ALL)
        set_attributes(sink, folder->fd, folder->up, folder->name, &folder->attributes,
                       folder->xattrs);
    else if (folder->keep == KEEP_TIMES && futimens(folder->fd, times) < 0)
        not_kept(sink, folder->up, folder->name, "time", errno);
}

static void leave(struct sink *sink, struct tree_folder *folder)
{
    while (--folder->uses == 0 && folder != &sink->top) {
        struct tree_folder *up = folder->up;
        if (!sink->cut) /* else it keeps the mode of the unfinished */
            finish(sink, folder);
        tree_folder_free(folder);
        folder = up;
    }
}

/* A source that was asked for `notes` must not send `.bashrc`. */
static bool asked_for(struct sink *sink, const char *name)
{
    size_t left = sink->asked_count;
    for (; left; left--) {
        char *own = tree_name(sink->asked[sink->asked_at]);
        bool same = strcmp(own, name) == 0;
        free(own);
        if (same)
            return true;
        sink->asked_at = (sink->asked_at + 1) % sink->asked_count;
    }
    return sink->asked_count == 0;
}

static const char *name_of(const struct sink *sink, const struct tree_record *record)
{
    return sink->in == &sink->top && sink->base.rename ? sink->base.rename : record->name;
}

static bool is_one(const struct sink *sink, uint64_t device, uint64_t inode,
                   const struct stat *state)
{
    return sink->source_here && inode == state->st_ino &&
           device == (uint32_t)state->st_dev;
}

static int take_enter(struct sink *sink, const struct tree_record *record)
{
    const char *name = name_of(sink, record), *why;
    struct stat state;
    if (++sink->depth > TREE_DEPTH_MOST + 1)
        return refuse("more folders within each other than this rdcp sends");
    if (!*name && sink->in != &sink->top)
        return refuse("a folder below DST without a name");
    struct tree_folder *folder =
        tree_folder_enter(sink->in, name, &record->attributes, sink->options, &why);
    folder->xattrs = sink->xattrs;
    sink->xattrs = NULL;
    if (!why && folder->fd >= 0 && fstat(folder->fd, &state) == 0 &&
        is_one(sink, record->attributes.device, record->attributes.inode, &state)) {
        why = "source and target are the same directory";
        close(folder->fd);
        folder->fd = -1; /* what is in it is passed over */
    }
    if (why)
        complain(sink, sink->in, name, why);
    sink->in = folder;
    return 0;
}

static int take_leave(struct sink *sink)
{
    if (!sink->depth)
        return refuse("it leaves a folder that it did not enter");
    struct tree_folder *folder = sink->in;
    sink->in = folder->up;
    sink->depth--;
    leave(sink, folder);
    return 0;
}

/* Is what has the name, `state`, the source of what is to take its place? As with cp, a
 * link to a file is that file, unless a link takes its place: then what this one leads to
 * is safe. */
static bool is_source(const struct sink *sink, const struct tree_folder *folder,
                      const char *name, const struct tree_attributes *own,
                      const struct tree_record *link, const struct stat *state)
{
    struct stat file;
    if (is_one(sink, own->device, own->inode, state))
        return true;
    if (link)
        return is_one(sink, link->device, link->inode, state);
    return S_ISLNK(state->st_mode) && fstatat(folder->fd, name, &file, 0) == 0 &&
           is_one(sink, own->device, own->inode, &file);
}

/* Is what has the name something that this may take the place of? `state` without an
 * inode: there is nothing. */
static const char *in_the_way(const struct sink *sink, const struct tree_folder *folder,
                              const char *name, const struct tree_attributes *own,
                              const struct tree_record *link, struct stat *state)
{
    *state = (struct stat){0};
    if (fstatat(folder->fd, name, state, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? NULL : strerror(errno);
    if (is_source(sink, folder, name, own, link, state))
        return "source and target are the same file";
    if (tree_made_find(&sink->made, state))
        return "another source had that name: it is not replaced";
    if (S_ISREG(state->st_mode) || S_ISLNK(state->st_mode))
        return NULL;
    return S_ISDIR(state->st_mode) ? "a directory has that name"
                                   : "a device, a FIFO or a socket has that name";
}

/* It has its name now, or had it before. */
static void remember(struct sink *sink, const struct tree_folder *folder,
                     const char *name, const struct stat *state)
{
    tree_made_add(&sink->made, state, 0);
    if (!sink->options->manifest || !S_ISREG(state->st_mode))
        return;
    char *path = tree_folder_path(folder, name);
    words_add(&sink->manifest.paths, path);
    free(path);
}

/* A job is over; `state` is that of the file, NULL where there is none. */
static int settle(struct sink *sink, struct job *job, enum tree_verdict verdict,
                  const struct stat *state)
{
    int result = answer(sink, job->number, verdict, 0);
    shut(&job->fd);
    if (state)
        remember(sink, job->folder, job->name, state);
    if (job->links > 1 && sink->options->hard_links && !sink->cut)
        tree_links_settle(&sink->links, job->number, sink->base.fd, state, &sink->errors);
    tree_xattr_close(&job->xattrs);
    sink->jobs[job->number % TREE_WINDOW] = NULL;
    leave(sink, job->folder);
    free(job);
    return result;
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
            set_attributes(sink, fd, job->folder, job->name, to, job->xattrs);
        else
            not_kept(sink, job->folder, job->name, "mode", errno);
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
    complain(sink, job->folder, job->name, why);
    free(why);
    sink->held -= job->fd >= 0;
    return settle(sink, job, TREE_REFUSED, NULL);
}

static int take_file(struct sink *sink, const struct tree_record *record)
{
    struct stat state = {0};
    if (sink->jobs[sink->next % TREE_WINDOW])
        return refuse("more files than it may have unanswered");
    struct job *job = allocated(malloc(sizeof *job));
    *job = (struct job){.number = sink->next++, .size = record->size,
                        .links = record->links, .folder = sink->in,
                        .attributes = record->attributes, .xattrs = sink->xattrs, .fd = -1};
    sink->xattrs = NULL;
    const char *name = name_of(sink, record);
    memcpy(job->name, name, strlen(name) + 1);
    sink->jobs[job->number % TREE_WINDOW] = job;
    sink->in->uses++;
    if (job->links > 1 && sink->options->hard_links)
        tree_links_add(&sink->links, job->number, sink->in, name);
    if (sink->in->absent)
        return answer(sink, job->number, TREE_SEND, 0);
    if (sink->in->fd < 0)
        return settle(sink, job, TREE_REFUSED, NULL);
    const char *why = in_the_way(sink, sink->in, name, &job->attributes, NULL, &state);
    if (!why)
        return ask(sink, job, &state, record->room);
    complain(sink, sink->in, name, why);
    return settle(sink, job, TREE_REFUSED, NULL);
}

static int take_sum(struct sink *sink, const struct tree_record *record)
{
    struct job *job = sink->jobs[record->number % TREE_WINDOW];
    uint8_t own[TREE_HASH_BYTES];
    struct stat state;
    if (!job || job->number != record->number || !job->sum)
        return refuse("a sum of a file that was not asked for");
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
        complain(sink, job->folder, job->name, why);
    if (job->fd >= 0 && !job->nameless)
        part_drop(job->folder->fd, job->name);
    shut(&job->fd);
}

/* A small file that replaces nothing, nor a part that was left, needs none to go on from:
 * it gets its name at once. */
static int open_body(struct sink *sink, struct job *job, const struct tree_record *record)
{
    char *why = NULL;
    if (job->fd >= 0) /* it is another file by now, or came damaged */
        close(job->fd);
    job->fd = -1;
    if (!job->replaces && !job->folder->had_parts && record->body_size < PART_LEAST)
        job->fd = part_nameless(job->folder->fd);
    job->nameless = job->fd >= 0;
    if (job->fd < 0)
        job->fd = part_open(job->folder->fd, job->name, &record->attributes,
                            record->body_size, &why);
    if (job->fd < 0)
        complain(sink, job->folder, job->name, why);
    free(why);
    return job->fd;
}

static int take_body(struct sink *sink, const struct tree_record *record)
{
    struct job *job = sink->jobs[record->body_number % TREE_WINDOW];
    if (!job || job->number != record->body_number || job->sum || sink->options->dry_run ||
        (record->body_from && (record->body_from != job->from || job->fd < 0)))
        return refuse("a body that was not asked for");
    sink->body = job;
    sink->body_size = record->body_size;
    sink->held -= job->fd >= 0 && !job->tries;
    tree_hash_begin(&sink->hash);
    if (!record->body_from)
        open_body(sink, job, record);
    else if (tree_hash_file(&sink->hash, job->fd, record->body_from) < 0)
        give_up(sink, strerror(errno));
    job->attributes = record->attributes;
    return 0;
}

static int take_data(struct sink *sink, const struct tree_record *record)
{
    size_t done = 0;
    uint64_t end = record->offset + record->length;
    if (record->offset < sink->hash.at || end > sink->body_size)
        return refuse("data where it does not belong");
    tree_hash_zeros(&sink->hash, record->offset);
    tree_hash_add(&sink->hash, record->bytes, record->length);
    while (sink->body->fd >= 0 && done < record->length) {
        ssize_t got = pwrite(sink->body->fd, record->bytes + done, record->length - done,
                             (off_t)(record->offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            give_up(sink, strerror(errno));
        else
            done += (size_t)got;
    }
    sink->bytes += done;
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

/* Gives the file its name. NULL, or why not: TAKEN if something has got it meanwhile. */
static const char *place(struct sink *sink, struct job *job, struct stat *state)
{
    const char *why = NULL;
    int folder = job->folder->fd, result;
    if (!job->nameless)
        why = in_the_way(sink, job->folder, job->name, &job->attributes, NULL, state);
    if (!why && !sink->options->no_sync && sink->body_size >= PART_LEAST &&
        fsync(job->fd) < 0)
        why = strerror(errno);
    if (why)
        return why;
    set_attributes(sink, job->fd, job->folder, job->name, &job->attributes, job->xattrs);
    result = job->nameless ? part_name_it(job->fd, folder, job->name)
                           : part_publish(folder, job->name, sink->body_size);
    if (result < 0 && errno == EEXIST && job->nameless) {
        why = in_the_way(sink, job->folder, job->name, &job->attributes, NULL, state);
        return why ? why : TAKEN;
    }
    return result < 0 || fstat(job->fd, state) < 0 ? strerror(errno) : NULL;
}

static int once_more(struct sink *sink, struct job *job)
{
    if (++job->tries >= TREE_TRIES) {
        give_up(sink, "arrived damaged each time: what was there before stays");
        return settle(sink, job, TREE_REFUSED, NULL);
    }
    char *path = tree_folder_path(job->folder, job->name);
    tree_say(path, "arrived damaged: asked for again");
    free(path);
    return answer(sink, job->number, TREE_AGAIN, 0);
}

static int take_whole(struct sink *sink, const struct tree_record *record)
{
    struct job *job = sink->body;
    struct stat state;
    uint8_t own[TREE_HASH_BYTES];
    bool hole = sink->hash.at < sink->body_size; /* at its end */
    tree_hash_zeros(&sink->hash, sink->body_size);
    tree_hash_end(&sink->hash, own);
    if (!record->sound)
        give_up(sink, NULL); /* the source has said why */
    else if (job->fd >= 0 && hole && ftruncate(job->fd, (off_t)sink->body_size) < 0)
        give_up(sink, strerror(errno));
    else if (job->fd >= 0 &&
             (memcmp(own, record->hash, sizeof own) != 0 ||
              (sink->options->verify && !verified(sink, job, record->hash)))) {
        sink->body = job;
        int result = once_more(sink, job);
        sink->body = NULL;
        return result;
    }
    const char *why = job->fd >= 0 ? place(sink, job, &state) : NULL;
    if (why && why != TAKEN)
        give_up(sink, why);
    sink->body = NULL;
    if (why == TAKEN) { /* as a part it takes the place of what has the name */
        job->replaces = true;
        job->tries++;
        return answer(sink, job->number, TREE_AGAIN, 0);
    }
    sink->files += job->fd >= 0;
    return settle(sink, job, job->fd >= 0 ? TREE_PLACED : TREE_REFUSED,
                  job->fd >= 0 ? &state : NULL);
}

static bool same_link(const struct tree_folder *folder, const char *name,
                      const char *target)
{
    char is[4096];
    ssize_t length = readlinkat(folder->fd, name, is, sizeof is);
    return length == (ssize_t)strlen(target) && memcmp(is, target, (size_t)length) == 0;
}

static void take_link(struct sink *sink, const struct tree_record *record)
{
    struct tree_folder *folder = sink->in;
    const char *name = name_of(sink, record);
    const struct tree_attributes *to = &record->attributes;
    struct timespec times[2] = {{0, UTIME_OMIT}, timespec_of(to->mtime_ns)};
    struct stat state;
    char *no_part = NULL, target[4096] = "";
    if (folder->fd < 0)
        return;
    memcpy(target, record->bytes, record->length);
    const char *why = in_the_way(sink, folder, name, to, record, &state);
    bool there = !why && same_link(folder, name, target);
    if (sink->options->dry_run && !why)
        return;
    if (why || (!there && part_link(folder->fd, name, target, &no_part) < 0)) {
        complain(sink, folder, name, why ? why : no_part);
        free(no_part);
        return;
    }
    if (utimensat(folder->fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        not_kept(sink, folder, name, "time", errno);
    if (sink->options->archive &&
        fchownat(folder->fd, name, to->uid, to->gid, AT_SYMLINK_NOFOLLOW) < 0)
        not_kept(sink, folder, name, "owner", errno);
    if (fstatat(folder->fd, name, &state, AT_SYMLINK_NOFOLLOW) == 0)
        remember(sink, folder, name, &state);
    sink->files += !there;
    sink->had += there;
}

static int take_hard(struct sink *sink, const struct tree_record *record)
{
    struct tree_folder *folder = sink->in;
    const char *name = name_of(sink, record);
    struct stat state;
    static const struct tree_attributes nobody;
    if (folder->fd < 0)
        return 0;
    const char *why = in_the_way(sink, folder, name, &nobody, NULL, &state);
    if (why && !tree_made_find(&sink->made, &state)) {
        complain(sink, folder, name, why);
        return 0;
    }
    if (sink->options->dry_run)
        return 0;
    if (tree_links_take(&sink->links, record->number, sink->base.fd, folder, name,
                        &sink->errors) < 0)
        return refuse("a hard link to a file that it did not announce");
    return 0;
}

static int take_start(struct sink *sink, const struct tree_record *record)
{
    char *id = boot_id();
    struct tree_record target = {.kind = TREE_TARGET};
    struct tree_base base;
    struct stat state;
    sink->started = tree_starts(record);
    sink->source_here = sink->started && id && record->length == strlen(id) &&
                        memcmp(id, record->bytes, record->length) == 0;
    target.bytes = (const uint8_t *)id;
    target.length = id ? (uint32_t)strlen(id) : 0;
    if (tree_base_open(&base, sink->target, !sink->options->many, true) == 0 &&
        fstat(base.fd, &state) == 0) {
        target.device = state.st_dev;
        target.inode = state.st_ino;
    }
    tree_base_close(&base);
    int result = sink->started ? tree_write(&sink->line, &target) : -1;
    free(id);
    return result;
}

static int find_base(struct sink *sink, bool folder)
{
    if (tree_base_open(&sink->base, sink->target, !sink->options->many, folder) < 0) {
        complain(sink, NULL, "", strerror(errno));
        return -1;
    }
    sink->top = (struct tree_folder){.fd = sink->base.fd, .uses = 1, .had_parts = true};
    if (sink->base.rename && folder) /* its paths are from DST, which is its copy */
        sink->manifest.skip = strlen(sink->base.rename);
    return 0;
}

/* Takes one record; -1, and has said why, if it has no place here. */
static int take(struct sink *sink, const struct tree_record *record)
{
    enum tree_kind kind = record->kind;
    bool first = kind == TREE_FILE || kind == TREE_ENTER || kind == TREE_LINK ||
                 kind == TREE_HARD;
    if (!sink->started)
        return take_start(sink, record);
    if (first && sink->in == &sink->top && !asked_for(sink, record->name)) {
        complain(sink, NULL, record->name, "nobody asked for it: nothing more is taken");
        return -1;
    }
    if (first && sink->base.fd < 0 && find_base(sink, kind == TREE_ENTER) < 0)
        return -1;
    if ((sink->body != NULL) != (kind == TREE_DATA || kind == TREE_WHOLE))
        return refuse("a record where it does not belong");
    if (first && sink->options->delete && sink->in != &sink->top)
        bytes_add(&sink->in->seen, record->name, strlen(record->name) + 1);
    switch (kind) {
    case TREE_ENTER: return take_enter(sink, record);
    case TREE_LEAVE: return take_leave(sink);
    case TREE_FILE: return take_file(sink, record);
    case TREE_LINK: take_link(sink, record); return 0;
    case TREE_HARD: return take_hard(sink, record);
    case TREE_XATTR: tree_xattr_take(&sink->xattrs, record); return 0;
    case TREE_SUM: return take_sum(sink, record);
    case TREE_BODY: return take_body(sink, record);
    case TREE_DATA: return take_data(sink, record);
    case TREE_WHOLE: return take_whole(sink, record);
    case TREE_END:
        if (sink->depth)
            return refuse("it ends within a folder");
        sink->errors += record->errors;
        sink->ended = true;
        return 0;
    default: return refuse("a record of another kind of stream");
    }
}

static void take_all(struct sink *sink)
{
    struct tree_record record = {0};
    const char *why = "";
    int got = 0;
    while (!sink->ended) {
        got = tree_next(&sink->line, &record, false, &why);
        if (got == 0) {
            if (answer_run(sink) < 0)
                return;
            got = tree_next(&sink->line, &record, true, &why);
        }
        if (got <= 0 || take(sink, &record) < 0)
            break;
    }
    if (got <= 0)
        refuse(got < 0 ? why : "it ends before its end");
}

/* What is asked for is dropped where there is little of it, else it stays, to go on. */
static void drop_jobs(struct sink *sink)
{
    for (size_t i = 0; i < TREE_WINDOW; i++) {
        struct job *job = sink->jobs[i];
        if (!job)
            continue;
        if (job->fd >= 0 && job == sink->body && !job->nameless && sink->body_size < PART_LEAST)
            part_drop(job->folder->fd, job->name);
        settle(sink, job, TREE_REFUSED, NULL);
    }
    while (sink->depth)
        take_leave(sink);
    tree_xattr_close(&sink->xattrs);
}

/* What the source does not have: removed if all else went well and --yes was given. */
static void delete_extra(struct sink *sink)
{
    bool may = sink->options->yes && !sink->errors && !sink->options->dry_run;
    for (size_t i = 0; i < sink->extra.count; i++) {
        const char *path = sink->extra.word[i];
        if (may && tree_remove(sink->base.fd, path) < 0)
            complain(sink, NULL, path, strerror(errno));
        else if (!may || sink->options->verbose)
            tree_say(may ? "deleted" : "would delete", path);
    }
    if (sink->extra.count && !may && !sink->options->dry_run) {
        fprintf(stderr, "rdcp: nothing was deleted: %s\n",
                sink->options->yes ? "not all was copied" : "give --yes to delete these");
        sink->errors++;
    }
}

static void conclude(struct sink *sink)
{
    const struct rdcp_options *options = sink->options;
    struct tree_record bye = {.kind = TREE_BYE}, record;
    const char *why = "";
    if (options->delete)
        delete_extra(sink);
    if (sink->base.fd >= 0 && !options->no_sync && !options->dry_run &&
        syncfs(sink->base.fd) < 0)
        complain(sink, NULL, "", strerror(errno));
    if (options->manifest &&
        tree_manifest_write(&sink->manifest, sink->base.fd, &sink->errors) < 0)
        sink->errors++;
    bye.errors = sink->errors;
    if (answer_run(sink) < 0 || tree_write(&sink->line, &bye) < 0 ||
        tree_flush(&sink->line) < 0)
        sink->ended = false;
    if (options->back)
        close(sink->line.out);
    else
        close(STDOUT_FILENO);
    if (tree_next(&sink->line, &record, true, &why) != 0 && sink->ended) {
        refuse("it goes on after its end");
        sink->ended = false;
    }
}

int tree_sink(const struct rdcp_options *options, const char *target, char **names,
              size_t count)
{
    struct sink *sink = allocated(calloc(1, sizeof *sink));
    int out = options->back ? tree_back_dial(options->back) : STDOUT_FILENO;
    signal(SIGPIPE, SIG_IGN);
    if (out < 0)
        return 1;
    tree_hash_open(&sink->hash, options->sha256);
    sink->options = options;
    sink->target = target;
    sink->asked = names;
    sink->asked_count = count;
    sink->base.fd = -1;
    sink->in = &sink->top;
    umask(0);
    tree_more_files();
    tree_line_open(&sink->line, STDIN_FILENO, out);
    if (options->verbose && !opens_below())
        fprintf(stderr, "rdcp: no openat2 in this kernel (Linux 5.6 has it): names are "
                        "opened one by one, through no symbolic link\n");
    take_all(sink);
    if (sink->ended)
        conclude(sink);
    sink->cut = !sink->ended;
    drop_jobs(sink);
    if (options->json || options->verbose)
        fprintf(stderr,
                options->json
                    ? "{\"files\": %llu, \"bytes\": %llu, \"there_already\": %llu, "
                      "\"errors\": %llu}\n"
                    : "rdcp: %llu files, %llu bytes, %llu there already\n",
                (unsigned long long)sink->files, (unsigned long long)sink->bytes,
                (unsigned long long)sink->had, (unsigned long long)sink->errors);
    int status = !sink->ended ? 1 : sink->errors ? TREE_SOME_FAILED : 0;
    tree_base_close(&sink->base);
    tree_made_close(&sink->made);
    tree_links_close(&sink->links);
    words_close(&sink->manifest.paths);
    words_close(&sink->extra);
    tree_hash_close(&sink->hash);
    bytes_close(&sink->line.input);
    bytes_close(&sink->line.output);
    free(sink);
    return status;
}
