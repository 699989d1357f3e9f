/* rdcp --serve-source: walks files and trees and announces them on stdout, and sends what
 * the sink asks for on stdin. See tree.h. */
#include "descriptors.h"
#include "tree_sides.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leash_work.h"
#include "tree_hash.h"
#include "tree_io.h"
#include "tree_part.h"
#include "tree_progress.h"

enum { LOOK_EACH = 64 }; /* files announced from one look for answers to the next */

struct folder {
    int fd; /* open while it is walked and while files in it may be asked for */
    unsigned uses;
};

struct job { /* a file that is announced, until its last answer */
    struct folder *folder;
    char *name, *path; /* in that folder; for messages. NULL: settled */
    bool follow;
    bool sent; /* it counts as passed, though not as settled */
    uint64_t size;
    struct tree_attributes attributes;
};

struct wish { /* what the sink asked for */
    uint64_t number, from, verdict;
};

struct source {
    const struct rdcp_options *options;
    struct tree_line line;
    struct job jobs[TREE_WINDOW];
    uint64_t next, oldest; /* numbers of files */
    struct wish wishes[TREE_WINDOW];
    uint64_t wished, granted;
    size_t folders; /* that are open */
    struct tree_made links; /* of -H: the numbers of files with more names */
    struct tree_target target;
    struct tree_progress progress;
    struct tree_hash hash;
    uint64_t errors, bytes;
    uint64_t passed; /* of bytes in files that are settled */
    uint8_t *piece;
    bool lost; /* the sink has left */
};

static void put(struct source *source, const struct tree_record *record)
{
    if (!source->lost && tree_write(&source->line, record) < 0)
        source->lost = true;
}

static void complain(struct source *source, const char *path, const char *what)
{
    tree_progress_clear(&source->progress);
    tree_error(&source->errors, path, what);
}

static void leave(struct source *source, struct folder *folder)
{
    if (--folder->uses)
        return;
    close(folder->fd);
    free(folder);
    source->folders--;
}

static void settle(struct source *source, struct job *job)
{
    source->passed += job->sent ? 0 : job->size;
    tree_progress_at(&source->progress, source->passed, source->bytes);
    if (job->folder)
        leave(source, job->folder);
    free(job->name);
    free(job->path);
    *job = (struct job){0};
    while (source->oldest < source->next &&
           !source->jobs[source->oldest % TREE_WINDOW].path)
        source->oldest++;
}

static struct job *job_of(struct source *source, uint64_t number)
{
    struct job *job = &source->jobs[number % TREE_WINDOW];
    return number >= source->oldest && number < source->next && job->path ? job : NULL;
}

static void take_answer(struct source *source, const struct tree_record *record)
{
    bool asked = record->verdict == TREE_SEND || record->verdict == TREE_AGAIN ||
                 record->verdict == TREE_ASK_SUM;
    for (uint64_t i = 0; i < record->count && !source->lost; i++) {
        struct job *job = job_of(source, record->number + i);
        if (!job || !record->verdict || record->verdict > TREE_REFUSED ||
            source->wished - source->granted >= TREE_WINDOW) {
            fputs("rdcp: the stream: an answer to what was not asked\n", stderr);
            source->lost = true;
        } else if (asked && source->options->dry_run) {
            tree_progress_clear(&source->progress);
            tree_say("would copy", job->path);
            settle(source, job);
        } else if (asked) {
            source->wishes[source->wished++ % TREE_WINDOW] =
                (struct wish){record->number + i, record->from, record->verdict};
        } else {
            settle(source, job);
        }
    }
}

/* Sends the data from `at` to `end`, without the holes. NULL, or what went wrong. */
static const char *send_data(struct source *source, int fd, uint64_t at, uint64_t end)
{
    uint64_t hole;
    while (!source->lost && tree_extent(fd, &at, end, &hole)) {
        tree_hash_zeros(&source->hash, at);
        while (at < hole && !source->lost) {
            size_t want = hole - at < TREE_DATA_MOST ? (size_t)(hole - at) : TREE_DATA_MOST;
            ssize_t got = pread(fd, source->piece, want, (off_t)at);
            if (got < 0 && errno == EINTR)
                continue;
            if (got < 0)
                return strerror(errno);
            if (got == 0)
                return "it shrank while it was read";
            tree_hash_add(&source->hash, source->piece, (size_t)got);
            put(source, &(struct tree_record){.kind = TREE_DATA,
                                              .offset = at,
                                              .bytes = source->piece,
                                              .length = (uint32_t)got});
            at += (uint64_t)got;
            source->bytes += (uint64_t)got;
            tree_progress_at(&source->progress, source->passed + at, source->bytes);
        }
    }
    tree_hash_zeros(&source->hash, end);
    return NULL;
}

static bool same(const struct stat *one, const struct stat *other)
{
    return one->st_size == other->st_size && one->st_ino == other->st_ino &&
           one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
           one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

static bool unchanged(int fd, const struct stat *before)
{
    struct stat now;
    return fstat(fd, &now) == 0 && same(&now, before) &&
           now.st_ctim.tv_sec == before->st_ctim.tv_sec &&
           now.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

static int open_job(const struct job *job, struct stat *state, const char **why)
{
    int fd = openat(job->folder ? job->folder->fd : AT_FDCWD, job->name,
                    O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
                        (job->follow ? 0 : O_NOFOLLOW));
    *why = fd < 0 ? strerror(errno) : NULL;
    if (fd >= 0 && (fstat(fd, state) < 0 || !S_ISREG(state->st_mode)))
        *why = "it changed before it was read";
    return fd;
}

/* What the sink has up to `from` is of the file as it was announced. */
static void send_body(struct source *source, struct job *job, const struct wish *wish)
{
    struct stat state;
    const char *why;
    int fd = open_job(job, &state, &why);
    struct tree_record body = {.kind = TREE_BODY, .attributes = job->attributes};
    body.body_number = wish->number;
    if (!why) {
        tree_attributes_of(&body.attributes, &state);
        body.body_size = (uint64_t)state.st_size;
        if (body.body_size == job->size &&
            body.attributes.inode == job->attributes.inode &&
            body.attributes.mtime_ns == job->attributes.mtime_ns &&
            wish->from <= job->size)
            body.body_from = wish->from;
    }
    source->passed -= job->sent ? job->size : 0;
    put(source, &body);
    struct tree_record whole = {.kind = TREE_WHOLE};
    tree_hash_begin(&source->hash);
    if (!why && body.body_size > TREE_DATA_MOST)
        posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    if (!why && tree_hash_file(&source->hash, fd, body.body_from) < 0)
        why = strerror(errno);
    if (!why)
        why = send_data(source, fd, body.body_from, body.body_size);
    if (!why && !unchanged(fd, &state))
        why = "it changed while it was read";
    if (why)
        complain(source, job->path, why);
    tree_hash_end(&source->hash, whole.hash);
    whole.sound = !why;
    put(source, &whole);
    job->sent = true;
    source->passed += job->size;
    shut(&fd);
}

static void send_sum(struct source *source, const struct job *job, uint64_t number)
{
    struct tree_record sum = {.kind = TREE_SUM, .number = number};
    struct stat state;
    const char *why;
    int fd = open_job(job, &state, &why);
    tree_hash_begin(&source->hash);
    if (!why && tree_hash_file(&source->hash, fd, (uint64_t)state.st_size) == 0)
        tree_hash_end(&source->hash, sum.hash); /* else a body is asked for: it says why */
    put(source, &sum);
    shut(&fd);
}

/* Grants a wish or takes an answer; where there is neither, waits for one if it may.
 * False: there is none. */
static bool serve(struct source *source, bool waits)
{
    struct tree_record record = {0};
    const char *why = "";
    if (source->granted < source->wished && !source->lost) {
        const struct wish *wish = &source->wishes[source->granted++ % TREE_WINDOW];
        struct job *job = job_of(source, wish->number);
        if (job && wish->verdict == TREE_ASK_SUM)
            send_sum(source, job, wish->number);
        else if (job)
            send_body(source, job, wish);
        return true;
    }
    int got = source->lost ? 0 : tree_next(&source->line, &record, waits, &why);
    if (got > 0 && record.kind == TREE_ANSWER) {
        take_answer(source, &record);
        return true;
    }
    if (got < 0 || (got > 0 && record.kind != TREE_BYE))
        fprintf(stderr, "rdcp: the answers: %s\n",
                got < 0 ? why : "a record of another kind of stream");
    source->lost |= got || waits;
    return false;
}

/* Announces a file; `folder` NULL: a source itself. */
static void announce(struct source *source, struct folder *folder, const char *name,
                     const struct stat *state, const char *as, const char *path)
{
    while (source->next - source->oldest >= TREE_WINDOW && !source->lost)
        serve(source, true);
    if (source->lost)
        return;
    struct tree_record record = {.kind = TREE_FILE};
    record.size = (uint64_t)state->st_size;
    record.room = (uint64_t)state->st_blocks * 512;
    record.links = state->st_nlink;
    tree_attributes_of(&record.attributes, state);
    snprintf(record.name, sizeof record.name, "%s", as);
    struct job *job = &source->jobs[source->next % TREE_WINDOW];
    *job = (struct job){.folder = folder, .name = allocated(strdup(name)),
                        .path = allocated(strdup(*path ? path : name)), .follow = !folder,
                        .size = record.size, .attributes = record.attributes};
    if (folder)
        folder->uses++;
    put(source, &record);
    if (++source->next % LOOK_EACH == 0)
        while (!source->lost && serve(source, false))
            ;
}

static void put_xattrs(struct source *source, int folder, const char *name, int flags,
                       const char *path)
{
    if (!source->options->xattrs && !source->options->acls)
        return;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    int result = fd >= 0 ? tree_xattr_send(&source->line, source->options, fd) : -1;
    if (result < 0 && fd >= 0)
        complain(source, path, strerror(errno));
    source->lost |= result > 0;
    shut(&fd);
}

static void put_file(struct source *source, struct folder *folder, const char *name,
                     const struct stat *state, const char *as, const char *path)
{
    if (source->options->hard_links && state->st_nlink > 1) {
        const uint64_t *number = tree_made_find(&source->links, state);
        if (number) {
            struct tree_record record = {.kind = TREE_HARD, .number = *number};
            snprintf(record.name, sizeof record.name, "%s", as);
            put(source, &record);
            return;
        }
        tree_made_add(&source->links, state, source->next);
    }
    put_xattrs(source, folder ? folder->fd : AT_FDCWD, name, folder ? O_NOFOLLOW : 0, path);
    announce(source, folder, name, state, as, path);
}

static void walk(struct source *source, struct folder *folder, const char *name,
                 const char *as, const char *path, bool follow, int depth);

static int by_name(const struct dirent **one, const struct dirent **other)
{
    return strcmp((*one)->d_name, (*other)->d_name);
}

/* The names in it, in the order of their bytes. */
static void put_entries(struct source *source, struct folder *folder, const char *path,
                        int depth)
{
    struct dirent **entries = NULL;
    int count = scandirat(folder->fd, ".", &entries, NULL, by_name);
    if (count < 0)
        complain(source, path, strerror(errno));
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        char *below = text_of("%s%s%s", path, *path ? "/" : "", name);
        bool passed = !strcmp(name, ".") || !strcmp(name, "..") || source->lost;
        if (!passed && part_is(name)) /* it would take the place of the sink's own */
            complain(source, below, "skipped: what a copy that was cut has left");
        else if (!passed)
            walk(source, folder, name, name, below, false, depth);
        free(below);
        free(entries[i]);
    }
    free(entries);
}

static void put_folder(struct source *source, struct folder *above, const char *name,
                       const struct stat *state, const char *as, const char *path,
                       bool follow, int depth)
{
    while (source->folders > (size_t)depth + TREE_FOLDERS_MOST && !source->lost)
        serve(source, true);
    int fd = openat(above ? above->fd : AT_FDCWD, name,
                    O_RDONLY | O_CLOEXEC | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW));
    if (fd < 0) {
        complain(source, *path ? path : name, strerror(errno));
        return;
    }
    struct folder *folder = allocated(malloc(sizeof *folder));
    *folder = (struct folder){fd, 1};
    source->folders++;
    put_xattrs(source, fd, ".", 0, path);
    struct tree_record record = {.kind = TREE_ENTER};
    tree_attributes_of(&record.attributes, state);
    snprintf(record.name, sizeof record.name, "%s", as);
    put(source, &record);
    put_entries(source, folder, path, depth + 1);
    put(source, &(struct tree_record){.kind = TREE_LEAVE});
    leave(source, folder);
}

static void put_link(struct source *source, struct folder *folder, const char *name,
                     const struct stat *state, const char *as, const char *path)
{
    char target[4096];
    struct tree_record record = {.kind = TREE_LINK, .bytes = (uint8_t *)target};
    struct stat referent;
    int above = folder ? folder->fd : AT_FDCWD;
    ssize_t length = readlinkat(above, name, target, sizeof target - 1);
    if (length <= 0) {
        complain(source, path, strerror(errno));
        return;
    }
    record.length = (uint32_t)length;
    tree_attributes_of(&record.attributes, state);
    if (fstatat(above, name, &referent, 0) == 0) {
        record.device = (uint32_t)referent.st_dev;
        record.inode = referent.st_ino;
    }
    snprintf(record.name, sizeof record.name, "%s", as);
    put(source, &record);
}

/* One name in `folder`, or a source itself, which the sink knows as `as`. */
static void walk(struct source *source, struct folder *folder, const char *name,
                 const char *as, const char *path, bool follow, int depth)
{
    struct stat state;
    const char *shown = *path ? path : name, *why = NULL;
    if (fstatat(folder ? folder->fd : AT_FDCWD, name, &state,
                follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0) {
        complain(source, shown, strerror(errno));
        return;
    }
    bool is_folder = S_ISDIR(state.st_mode);
    if (folder && tree_excluded(source->options, path, is_folder))
        return;
    if (S_ISLNK(state.st_mode)) {
        put_link(source, folder, name, &state, as, path);
        return;
    }
    if (!S_ISREG(state.st_mode) && !is_folder)
        why = "skipped: a device, a FIFO or a socket";
    else if (is_folder && !source->options->recursive)
        why = "a directory: give -r to copy it";
    else if (is_folder && tree_target_is(&source->target, &state))
        why = "a directory cannot be copied into itself";
    else if (is_folder && depth >= TREE_DEPTH_MOST)
        why = "too deep, and so is all that is in it";
    if (why)
        complain(source, shown, why);
    else if (is_folder)
        put_folder(source, folder, name, &state, as, path, follow, depth);
    else
        put_file(source, folder, name, &state, as, path);
}

static int greet(struct source *source)
{
    char *id = boot_id();
    struct tree_record record = {.kind = TREE_START, .version = TREE_VERSION};
    const char *why = "";
    record.bytes = (const uint8_t *)id;
    record.length = id ? (uint32_t)strlen(id) : 0;
    put(source, &record);
    int got = source->lost ? 0 : tree_next(&source->line, &record, true, &why);
    if (got < 0)
        fprintf(stderr, "rdcp: the answers: %s\n", why);
    bool greeted = got > 0 && tree_starts(&record);
    if (greeted)
        source->target = (struct tree_target){
            .here = id && record.length == strlen(id) &&
                    memcmp(id, record.bytes, record.length) == 0,
            .device = record.device,
            .inode = record.inode,
        };
    free(id);
    return greeted ? 0 : -1;
}

static void put_all(struct source *source, char **names, size_t count)
{
    for (size_t i = 0; i < count && !source->lost; i++) {
        char *name = leash_work_file(names[i]);
        char *as = tree_name(names[i]);
        size_t length = strlen(names[i]);
        bool slash = length && names[i][length - 1] == '/';
        walk(source, NULL, name, as, as, !source->options->recursive || slash, 0);
        free(as);
        free(name);
    }
    while (source->oldest < source->next && !source->lost)
        serve(source, true);
    put(source, &(struct tree_record){.kind = TREE_END, .errors = source->errors});
    struct tree_record record = {0};
    const char *why = "";
    if (source->lost || tree_next(&source->line, &record, true, &why) <= 0 ||
        record.kind != TREE_BYE)
        source->lost = true;
}

static void source_close(struct source *source)
{
    tree_progress_close(&source->progress);
    for (uint64_t i = source->oldest; i < source->next; i++)
        if (source->jobs[i % TREE_WINDOW].path)
            settle(source, &source->jobs[i % TREE_WINDOW]);
    tree_made_close(&source->links);
    tree_hash_close(&source->hash);
    tree_line_close(&source->line);
    free(source->piece);
    free(source);
}

int tree_source(const struct rdcp_options *options, char **names, size_t count)
{
    struct source *source = allocated(calloc(1, sizeof *source));
    signal(SIGPIPE, SIG_IGN);
    tree_more_files();
    source->piece = allocated(malloc(TREE_DATA_MOST));
    tree_hash_open(&source->hash, options->sha256);
    source->options = options;
    tree_line_open(&source->line, STDIN_FILENO, STDOUT_FILENO);
    source->lost = greet(source) < 0;
    if ((options->progress || options->json) && !source->lost)
        tree_progress_open(&source->progress, names, count, options, &source->target);
    put_all(source, names, count);
    int status = source->lost; /* what was skipped is the sink's to report */
    source_close(source);
    return status;
}
