/*
 * rdcp --serve-source: walk files and trees, announce them on stdout, and send the bodies that the
 * sink requests on stdin. See tree.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "tree_attributes.h"
#include "tree_hash.h"
#include "tree_io.h"
#include "tree_part.h"
#include "tree_progress.h"
#include "tree_sides.h"

enum {
    LOOK_EACH = 64, /* files announced between two checks for answers */
    ANSWERS_MOST = TREE_WINDOW * (1 + TREE_TRIES) * TREE_HEAD, /* limit on unread answers */
    AHEAD_MOST = 16 << 20, /* limit on queued records before the target is known */
};

struct folder {
    int fd; /* open during the walk and while its files may be requested */
    unsigned uses;
    char path[]; /* for messages */
};

struct entry { /* a source or an entry below it */
    struct folder *folder; /* NULL: a source itself, which is announced as `as` */
    const char *name, *as;
    bool follow;
    int depth;
    struct stat state;
};

struct job { /* an announced file, until its final answer */
    struct folder *folder;
    char *name; /* in that folder; NULL: settled */
    bool sent;  /* its size is included in `passed` before it is settled */
    uint64_t size;
    uint64_t from; /* offset at which the requested body starts */
    uint64_t inode;
    int64_t mtime_ns;
};

struct source {
    const struct rdcp_options *options;
    char **names; /* sources to copy; not owned */
    size_t count;
    struct tree_line line;
    struct job jobs[TREE_WINDOW];
    uint64_t next, oldest; /* numbers of files */
    uint64_t wishes[TREE_WINDOW]; /* numbers of the requested files */
    uint64_t wished, granted;
    size_t folders; /* number of open folders */
    bool met; /* `target` is known; until then records and errors are held back */
    bool anew; /* the target itself was walked: discard the queue and walk again */
    uint64_t target_device, target_inode; /* its folder; inode 0: it is on another machine */
    struct tree_made ahead; /* folders walked before the target was known */
    struct tree_progress progress;
    struct tree_hash hash;
    uint64_t errors, bytes;
    uint64_t announced; /* bytes in announced files */
    bool walked;        /* all files are announced: `announced` is the total */
    uint64_t passed;    /* bytes in settled files */
};

/* Return "a/b/name"; the caller frees it. */
static char *path_of(const struct folder *folder, const char *name)
{
    if (folder)
        return text_of("%s%s%s", folder->path, folder->path[0] ? "/" : "", name);
    char *own = tree_name(name);
    if (*own)
        return own;
    free(own);
    return allocated(strdup(name));
}

/* True if the walk must stop. */
static bool stopped(const struct source *source)
{
    return source->line.lost || source->anew;
}

/*
 * Take the target record if it is available, or wait for it if `waits`. Return false to stop the
 * walk.
 */
static bool authenticate(struct source *source, bool waits)
{
    struct tree_record record = {0};
    const char *why = "";
    if (source->met || stopped(source))
        return !stopped(source);
    int got = tree_next(&source->line, &record, waits, &why);
    if (got == 0 && !waits && !source->line.ended)
        return true;
    if (got > 0 && record.kind != TREE_TARGET) {
        got = -1;
        why = "they do not begin with the target";
    }
    if (got < 0)
        fprintf(stderr, "rdcp: the answers: %s\n", why);
    source->line.lost |= got <= 0;
    source->line.held = false;
    source->met = true;
    source->target_device = record.device;
    source->target_inode = record.inode;
    struct stat state = {.st_dev = record.device, .st_ino = record.inode};
    source->anew = record.inode && tree_made_find(&source->ahead, &state);
    tree_progress_open(&source->progress, source->options);
    return !stopped(source);
}

static void complain(struct source *source, const struct folder *folder, const char *name,
                     const char *what)
{
    if (!source->met && !authenticate(source, true))
        return; /* the stream is lost, or the second walk reports the error again */
    char *path = path_of(folder, name);
    tree_progress_clear(&source->progress);
    tree_error(&source->errors, path, what);
    free(path);
}

static int fd_of(const struct folder *folder)
{
    return folder ? folder->fd : AT_FDCWD;
}

static int open_in(const struct folder *folder, const char *name, bool follow, int flags)
{
    return openat(fd_of(folder), name,
                  O_RDONLY | O_CLOEXEC | flags | (follow ? 0 : O_NOFOLLOW));
}

static void leave(struct source *source, struct folder *folder)
{
    if (!folder || --folder->uses)
        return;
    close(folder->fd);
    free(folder);
    source->folders--;
}

/* Show the progress; `more` bytes of the file that is being sent are done. */
static void show(struct source *source, uint64_t more, bool last)
{
    tree_progress_show(&source->progress, source->passed + more, source->bytes,
                       source->walked ? (int64_t)source->announced : -1, last);
}

static void drop(struct source *source, struct job *job)
{
    leave(source, job->folder);
    free(job->name);
    *job = (struct job){0};
}

static void settle(struct source *source, struct job *job)
{
    source->passed += job->sent ? 0 : job->size;
    show(source, 0, false);
    drop(source, job);
    while (source->oldest < source->next &&
           !source->jobs[source->oldest % TREE_WINDOW].name)
        source->oldest++;
}

static struct job *job_of(struct source *source, uint64_t number)
{
    struct job *job = &source->jobs[number % TREE_WINDOW];
    return number >= source->oldest && number < source->next && job->name ? job : NULL;
}

static void take_answer(struct source *source, const struct tree_record *record)
{
    bool asked = record->verdict == TREE_SEND || record->verdict == TREE_AGAIN;
    for (uint64_t i = 0; i < record->count && !source->line.lost; i++) {
        struct job *job = job_of(source, record->number + i);
        if (!job || !record->verdict || record->verdict > TREE_REFUSED ||
            source->wished - source->granted >= TREE_WINDOW) {
            fputs("rdcp: the stream: an answer to what was not asked\n", stderr);
            source->line.lost = true;
        } else if (asked) {
            job->from = record->from;
            source->wishes[source->wished++ % TREE_WINDOW] = record->number + i;
        } else {
            settle(source, job);
        }
    }
}

static bool send_piece(void *argument, uint64_t at, const uint8_t *bytes, size_t length)
{
    struct source *source = argument;
    struct tree_record data = {.kind = TREE_DATA, .length = (uint32_t)length,
                               .bytes = bytes};
    data.offset = at;
    tree_write(&source->line, &data);
    source->bytes += length;
    show(source, at + length, false);
    return !source->line.lost;
}

static bool unchanged(int fd, const struct stat *before)
{
    struct stat now;
    return fstat(fd, &now) == 0 && now.st_size == before->st_size &&
           now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == before->st_mtim.tv_nsec &&
           now.st_ctim.tv_sec == before->st_ctim.tv_sec &&
           now.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

/*
 * Describe the file in `body`. Resume at `from` only if the file is still as announced; otherwise
 * send all of it. Return NULL or the error.
 */
static const char *describe(const struct job *job, int fd, struct stat *state,
                            struct tree_record *body)
{
    const struct tree_attributes *is = &body->attributes;
    if (fd < 0 || fstat(fd, state) < 0)
        return strerror(errno);
    if (!S_ISREG(state->st_mode))
        return "it changed before it was read";
    tree_attributes_of(&body->attributes, state);
    body->body_size = (uint64_t)state->st_size;
    if (body->body_size == job->size && is->inode == job->inode &&
        is->mtime_ns == job->mtime_ns && job->from <= job->size)
        body->body_from = job->from;
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

static void send_body(struct source *source, struct job *job, uint64_t number)
{
    struct tree_record body = {.kind = TREE_BODY};
    struct tree_record whole = {.kind = TREE_WHOLE};
    struct stat state;
    int fd = open_in(job->folder, job->name, !job->folder, O_NONBLOCK | O_NOCTTY);
    const char *why = describe(job, fd, &state, &body);
    body.body_number = number;
    tree_write(&source->line, &body);
    source->passed -= job->sent ? job->size : 0;
    if (!why)
        why = send_content(source, fd, &state, body.body_from);
    if (!why)
        tree_hash_end(&source->hash, whole.hash);
    else if (!source->line.lost)
        complain(source, job->folder, job->name, why);
    whole.kind = why ? TREE_BROKEN : TREE_WHOLE;
    tree_write(&source->line, &whole);
    job->sent = true;
    source->passed += job->size;
    shut(&fd);
}

/*
 * Send a requested body or take one answer. If neither is available, wait for an answer if `waits`.
 * Return false if there is no more work.
 */
static bool serve(struct source *source, bool waits)
{
    struct tree_record record = {0};
    const char *why = "";
    if (!source->met || stopped(source)) {
        authenticate(source, waits);
        return false;
    }
    if (source->granted < source->wished) {
        uint64_t number = source->wishes[source->granted++ % TREE_WINDOW];
        struct job *job = job_of(source, number);
        if (job)
            send_body(source, job, number);
        return true;
    }
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

static struct tree_record record_of(enum tree_kind kind, const struct entry *entry)
{
    struct tree_record record = {.kind = kind};
    tree_attributes_of(&record.attributes, &entry->state);
    snprintf(record.name, sizeof record.name, "%s", entry->as);
    return record;
}

static void put_file(struct source *source, const struct entry *entry)
{
    struct folder *folder = entry->folder;
    struct tree_record record = record_of(TREE_FILE, entry);
    while (source->next - source->oldest >= TREE_WINDOW && !stopped(source))
        serve(source, true);
    record.size = (uint64_t)entry->state.st_size;
    record.room = (uint64_t)entry->state.st_blocks * 512;
    source->jobs[source->next % TREE_WINDOW] = (struct job){
        .folder = folder, .name = allocated(strdup(entry->name)), .size = record.size,
        .inode = record.attributes.inode, .mtime_ns = record.attributes.mtime_ns};
    if (folder)
        folder->uses++;
    tree_write(&source->line, &record);
    source->announced += record.size;
    if (++source->next % LOOK_EACH)
        return;
    while (serve(source, false) && !tree_progress_wanted(source->options))
        ; /* with progress only once: the walk soon ends then, and the total is known */
}

static void walk(struct source *source, struct entry *entry);

static void put_entries(struct source *source, struct folder *folder, int depth)
{
    struct dirent **names = NULL;
    int count = tree_entries(folder->fd, &names);
    if (count < 0)
        complain(source, folder, ".", strerror(errno));
    for (int i = 0; i < count; i++) {
        struct entry entry = {.folder = folder, .name = names[i]->d_name,
                              .as = names[i]->d_name, .depth = depth};
        if (stopped(source))
            ;
        else if (part_is(entry.name)) /* it would replace the sink's own part file */
            complain(source, folder, entry.name,
                     "skipped: what a copy that was cut has left");
        else
            walk(source, &entry);
        free(names[i]);
    }
    free(names);
}

static void put_folder(struct source *source, const struct entry *entry)
{
    while (source->folders > (size_t)entry->depth + TREE_FOLDERS_MOST && !stopped(source))
        serve(source, true);
    int fd = open_in(entry->folder, entry->name, entry->follow, O_DIRECTORY);
    if (fd < 0) {
        complain(source, entry->folder, entry->name, strerror(errno));
        return;
    }
    char *path = entry->folder ? path_of(entry->folder, entry->name)
                               : allocated(strdup(entry->as));
    struct folder *folder = allocated(malloc(sizeof *folder + strlen(path) + 1));
    *folder = (struct folder){fd, 1};
    memcpy(folder->path, path, strlen(path) + 1);
    free(path);
    source->folders++;
    if (!source->met)
        tree_made_add(&source->ahead, &entry->state);
    struct tree_record record = record_of(TREE_ENTER, entry);
    tree_write(&source->line, &record);
    put_entries(source, folder, entry->depth + 1);
    tree_write(&source->line, &(struct tree_record){.kind = TREE_LEAVE});
    leave(source, folder);
}

static void put_link(struct source *source, const struct entry *entry)
{
    char target[4096];
    struct tree_record record = record_of(TREE_LINK, entry);
    struct stat referent;
    int above = fd_of(entry->folder);
    ssize_t length = readlinkat(above, entry->name, target, sizeof target - 1);
    if (length <= 0) {
        complain(source, entry->folder, entry->name, strerror(errno));
        return;
    }
    record.bytes = (uint8_t *)target;
    record.length = (uint32_t)length;
    if (fstatat(above, entry->name, &referent, 0) == 0) {
        record.device = (uint32_t)referent.st_dev;
        record.inode = referent.st_ino;
    }
    tree_write(&source->line, &record);
}

static bool is_target(const struct source *source, const struct stat *state)
{
    return source->target_inode && state->st_dev == source->target_device &&
           state->st_ino == source->target_inode;
}

static void walk(struct source *source, struct entry *entry)
{
    const char *why = NULL;
    if (source->line.output.length > AHEAD_MOST)
        authenticate(source, true);
    if (fstatat(fd_of(entry->folder), entry->name, &entry->state,
                entry->follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0) {
        complain(source, entry->folder, entry->name, strerror(errno));
        return;
    }
    mode_t mode = entry->state.st_mode;
    if (!S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode))
        why = "skipped: a device, a FIFO or a socket";
    else if (S_ISDIR(mode) && !source->options->recursive)
        why = "a directory: give -r to copy it";
    else if (S_ISDIR(mode) && is_target(source, &entry->state))
        why = "a directory cannot be copied into itself";
    else if (S_ISDIR(mode) && entry->depth >= TREE_DEPTH_MOST)
        why = "too deep, and so is all that is in it";
    if (why)
        complain(source, entry->folder, entry->name, why);
    else if (S_ISDIR(mode))
        put_folder(source, entry);
    else if (S_ISLNK(mode))
        put_link(source, entry);
    else
        put_file(source, entry);
}

static void greet(struct source *source)
{
    char *id = boot_id();
    struct tree_record record = {.kind = TREE_START, .bytes = (const uint8_t *)id,
                                 .length = id ? (uint32_t)strlen(id) : 0};
    record.version = TREE_VERSION;
    tree_write(&source->line, &record);
    tree_flush(&source->line);
    source->line.held = true;
    free(id);
}

/* Discard the announced files. */
static void forget(struct source *source)
{
    for (uint64_t i = source->oldest; i < source->next; i++)
        if (source->jobs[i % TREE_WINDOW].name)
            drop(source, &source->jobs[i % TREE_WINDOW]);
    source->next = source->oldest = source->passed = source->announced = 0;
}

static void walk_all(struct source *source)
{
    for (size_t i = 0; i < source->count && !stopped(source); i++) {
        char *name = agent_work_file(source->names[i]), *as = tree_name(source->names[i]);
        struct entry entry = {.name = name, .as = as};
        entry.follow = !source->options->recursive || name[strlen(name) - 1] == '/';
        walk(source, &entry);
        free(as);
        free(name);
    }
    authenticate(source, true);
}

static void put_all(struct source *source)
{
    walk_all(source);
    if (source->anew) {
        forget(source);
        source->line.output.length = 0;
        source->anew = false;
        walk_all(source);
    }
    source->walked = true;
    while (source->oldest < source->next && !source->line.lost)
        serve(source, true);
    if (!source->line.lost)
        show(source, 0, true);
    tree_progress_clear(&source->progress);
    struct tree_record record = {.kind = TREE_END};
    const char *why;
    record.errors = source->errors;
    tree_write(&source->line, &record);
    if (source->line.lost || tree_next(&source->line, &record, true, &why) <= 0 ||
        record.kind != TREE_BYE)
        source->line.lost = true;
}

static void source_close(struct source *source)
{
    forget(source);
    tree_made_close(&source->ahead);
    tree_hash_close(&source->hash);
    tree_line_close(&source->line);
    free(source);
}

int tree_source(const struct rdcp_options *options, char **names, size_t count)
{
    struct source *source = allocated(calloc(1, sizeof *source));
    signal(SIGPIPE, SIG_IGN);
    tree_hash_open(&source->hash, options->sha256);
    source->options = options;
    source->names = names;
    source->count = count;
    tree_line_open(&source->line, STDIN_FILENO, STDOUT_FILENO);
    source->line.most = ANSWERS_MOST; /* otherwise the sink could block for ever */
    greet(source);
    put_all(source);
    int status = source->line.lost; /* the sink reports skipped files */
    source_close(source);
    return status;
}
