/* rdcp --serve-sink: makes files and trees below DST from the stream on stdin. Every
 * name is opened in the folder that is open already, through no symbolic link. */
#include "tree_sides.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tree_name.h"
#include "tree_base.h"
#include "tree_io.h"
#include "tree_made.h"
#include "tree_part.h"

enum { DEPTH_MOST = 512 };

enum keep { KEEP_NOTHING, KEEP_TIMES, KEEP_ALL };

struct folder {
    int fd; /* -1: it could not be entered, and nothing below it can */
    enum keep keep;
    struct tree_attributes attributes;
    char name[TREE_NAME_MOST + 1]; /* "" = DST itself */
};

struct sink {
    const struct rdcp_options *options;
    const char *target;
    char **asked; /* the sources; what the stream has at its top is called as they are */
    size_t asked_count, asked_at; /* where the last one was found */
    struct tree_base base;        /* where the names at the top go */
    struct folder stack[DEPTH_MOST];
    int depth;
    uint64_t skipped; /* folders within each other that are too deep for the stack */
    struct tree_record file; /* the one being received */
    int file_fd;             /* -1: none, or given up */
    struct tree_made made;
    uint64_t errors, files, bytes;
    bool started, ended;
    bool source_here; /* on this machine: what it has may be what stands here */
};

static int here(const struct sink *sink)
{
    if (sink->skipped)
        return -1;
    return sink->depth ? sink->stack[sink->depth - 1].fd : sink->base.fd;
}

/* About `name`, in the folder that is open. */
static void complain(struct sink *sink, const char *name, const char *what)
{
    struct bytes path = {0};
    for (int i = 0; i < sink->depth; i++)
        if (sink->stack[i].name[0])
            bytes_format(&path, "%s/", sink->stack[i].name);
    bytes_text(&path, name);
    tree_error(&sink->errors, path.length ? path.data : sink->target,
               what ? what : strerror(ENOMEM));
    bytes_close(&path);
}

static int refuse(const char *why)
{
    fprintf(stderr, "rdcp: the stream: %s\n", why);
    return -1;
}

static int find_base(struct sink *sink, const struct tree_record *record)
{
    bool folder = record->kind == TREE_ENTER;
    if (tree_base_open(&sink->base, sink->target, !sink->options->many, folder) == 0)
        return 0;
    complain(sink, "", strerror(errno));
    return -1;
}

/* A source that was asked for `notes` must not send `.bashrc`. */
static bool asked_for(struct sink *sink, const char *name)
{
    size_t left = sink->asked_count;
    for (; left; left--) {
        char *own = tree_name(sink->asked[sink->asked_at]);
        bool same = own && strcmp(own, name) == 0;
        free(own);
        if (same)
            return true;
        sink->asked_at = (sink->asked_at + 1) % sink->asked_count;
    }
    return sink->asked_count == 0;
}

static const char *name_of(const struct sink *sink, const struct tree_record *record)
{
    return sink->depth == 0 && sink->base.rename ? sink->base.rename : record->name;
}

static void not_kept(struct sink *sink, const char *name, const char *what, int error)
{
    char text[128];
    snprintf(text, sizeof text, "arrived, but its %s could not be kept: %s", what,
             strerror(error));
    complain(sink, name, text);
}

static void set_attributes(struct sink *sink, int fd, const char *name,
                           const struct tree_attributes *to)
{
    struct timespec times[2] = {timespec_of(to->atime_ns), timespec_of(to->mtime_ns)};
    bool archive = sink->options->archive, owned = archive;
    if (archive && fchown(fd, to->uid, to->gid) < 0) {
        owned = false;
        bool group = errno == EPERM && fchown(fd, (uid_t)-1, to->gid) == 0;
        not_kept(sink, name, group ? "owner" : "owner and group", errno);
    }
    /* Who cannot give the owner away must not give the set-uid bit either. */
    if (fchmod(fd, to->mode & (owned ? 07777 : 0777)) < 0)
        not_kept(sink, name, "mode", errno);
    if (futimens(fd, times) < 0)
        not_kept(sink, name, "time", errno);
}

/* Which attributes of its source a folder gets when all is in it. One that was there has
 * got a new time by what was put into it; its mode is its own, but for DST itself. */
static enum keep what_to_keep(const struct sink *sink, int fd, bool made, bool named)
{
    struct stat state;
    if (made || sink->options->archive)
        return KEEP_ALL;
    if (fstat(fd, &state) < 0 || state.st_uid != geteuid())
        return KEEP_NOTHING;
    if (tree_is_unfinished(&state))
        return KEEP_ALL;
    return named ? KEEP_TIMES : KEEP_NOTHING;
}

static bool is_one(const struct sink *sink, uint64_t device, uint64_t inode,
                   const struct stat *state)
{
    return sink->source_here && inode == state->st_ino &&
           device == (uint32_t)state->st_dev;
}

static bool is_source_folder(const struct sink *sink, int fd,
                             const struct tree_attributes *of)
{
    struct stat state;
    return fd >= 0 && fstat(fd, &state) == 0 &&
           is_one(sink, of->device, of->inode, &state);
}

static int take_enter(struct sink *sink, const struct tree_record *record)
{
    const char *name = name_of(sink, record);
    int parent = here(sink);
    struct folder *folder = &sink->stack[sink->depth];
    if (sink->depth == DEPTH_MOST) {
        if (parent >= 0)
            complain(sink, name, "too deep, and so is all that is in it");
        sink->skipped++;
        return 0;
    }
    if (!*name && sink->depth)
        return refuse("a folder below DST without a name");
    *folder = (struct folder){.fd = -1, .attributes = record->attributes};
    snprintf(folder->name, sizeof folder->name, "%s", name);
    bool made = false;
    if (parent >= 0 && !*name) {
        folder->fd = dup(parent);
    } else if (parent >= 0) {
        made = mkdirat(parent, name, TREE_UNFINISHED) == 0;
        if (made || errno == EEXIST)
            folder->fd = open_below(parent, name, O_RDONLY | O_DIRECTORY, 0);
    }
    if (is_source_folder(sink, folder->fd, &record->attributes)) {
        complain(sink, name, "source and target are the same directory");
        close(folder->fd);
        folder->fd = -1; /* what is in it is passed over */
    } else if (folder->fd >= 0) {
        folder->keep = what_to_keep(sink, folder->fd, made, *name);
    } else if (parent >= 0) {
        complain(sink, name, strerror(errno));
    }
    sink->depth++;
    return 0;
}

static int take_leave(struct sink *sink)
{
    if (!sink->depth)
        return refuse("it leaves a folder that it did not enter");
    if (sink->skipped) {
        sink->skipped--;
        return 0;
    }
    struct folder *folder = &sink->stack[--sink->depth];
    struct timespec times[2] = {timespec_of(folder->attributes.atime_ns),
                                timespec_of(folder->attributes.mtime_ns)};
    if (folder->fd < 0)
        return 0;
    if (folder->keep == KEEP_ALL)
        set_attributes(sink, folder->fd, folder->name, &folder->attributes);
    else if (folder->keep == KEEP_TIMES && futimens(folder->fd, times) < 0)
        not_kept(sink, folder->name, "time", errno);
    close(folder->fd);
    return 0;
}

/* Is what has the name, `state`, the source of what is to take its place? As with cp, a
 * link to a file is that file, unless a link takes its place: then what this one leads to
 * is safe. */
static bool is_source(const struct sink *sink, const char *name,
                      const struct tree_record *record, const struct stat *state)
{
    const struct tree_attributes *own = &record->attributes;
    struct stat file;
    if (is_one(sink, own->device, own->inode, state))
        return true;
    if (record->kind == TREE_LINK)
        return is_one(sink, record->device, record->inode, state);
    return fstatat(here(sink), name, &file, 0) == 0 &&
           is_one(sink, own->device, own->inode, &file);
}

/* Is what has the name something that this may take the place of? */
static const char *in_the_way(const struct sink *sink, const char *name,
                              const struct tree_record *record)
{
    struct stat state;
    if (fstatat(here(sink), name, &state, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? NULL : strerror(errno);
    if (is_source(sink, name, record, &state))
        return "source and target are the same file";
    if (tree_made_has(&sink->made, &state))
        return "another source had that name: it is not replaced";
    if (S_ISREG(state.st_mode) || S_ISLNK(state.st_mode))
        return NULL;
    return S_ISDIR(state.st_mode) ? "a directory has that name"
                                  : "a device, a FIFO or a socket has that name";
}

static void remember(struct sink *sink, const char *name)
{
    struct stat state;
    if (fstatat(here(sink), name, &state, AT_SYMLINK_NOFOLLOW) == 0 &&
        tree_made_add(&sink->made, &state) < 0)
        complain(sink, name, strerror(ENOMEM));
    sink->files++;
}

static void take_file(struct sink *sink, const struct tree_record *record)
{
    const char *name = name_of(sink, record);
    sink->file = *record;
    snprintf(sink->file.name, sizeof sink->file.name, "%s", name);
    sink->file_fd = -1;
    if (here(sink) < 0)
        return;
    char *no_part = NULL;
    const char *why = in_the_way(sink, name, record);
    if (!why)
        sink->file_fd = part_open(here(sink), name, record, &no_part);
    if (sink->file_fd < 0)
        complain(sink, name, why ? why : no_part);
    free(no_part);
}

static void let_go(struct sink *sink, bool keep)
{
    if (!keep)
        part_drop(here(sink), sink->file.name);
    close(sink->file_fd);
    sink->file_fd = -1;
}

static void take_data(struct sink *sink, const struct tree_record *record)
{
    size_t done = 0;
    while (sink->file_fd >= 0 && done < record->length) {
        ssize_t got = pwrite(sink->file_fd, record->data + done, record->length - done,
                             (off_t)(record->offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            complain(sink, sink->file.name, strerror(errno));
            let_go(sink, sink->file.size >= PART_LEAST);
        } else {
            done += (size_t)got;
        }
    }
    sink->bytes += done;
}

/* Reads the file again, from the disk where the kernel lets go of its pages. */
static const char *verified(const struct sink *sink, const struct tree_record *record)
{
    uint64_t sum;
    fdatasync(sink->file_fd);
    posix_fadvise(sink->file_fd, 0, 0, POSIX_FADV_DONTNEED);
    if (sum_of(sink->file_fd, sink->file.size, &sum) < 0)
        return strerror(errno);
    return sum == record->sum ? NULL : "what was read again is not what was sent";
}

static void take_whole(struct sink *sink, const struct tree_record *record)
{
    const char *name = sink->file.name, *why = NULL;
    if (sink->file_fd < 0)
        return;
    if (!record->length) {
        let_go(sink, false); /* the source has said why */
        return;
    }
    if (ftruncate(sink->file_fd, (off_t)sink->file.size) < 0)
        why = strerror(errno);
    if (!why && sink->options->verify)
        why = verified(sink, record);
    if (!why && !sink->options->no_sync && sink->file.size >= PART_LEAST &&
        fsync(sink->file_fd) < 0)
        why = strerror(errno);
    if (!why)
        why = in_the_way(sink, name, &sink->file);
    if (!why) { /* last: a part that cannot be written cannot be gone on with */
        set_attributes(sink, sink->file_fd, name, &sink->file.attributes);
        why = part_publish(here(sink), name) < 0 ? strerror(errno) : NULL;
    }
    if (why)
        complain(sink, name, why);
    else
        remember(sink, name);
    let_go(sink, !why);
}

static void take_link(struct sink *sink, const struct tree_record *record)
{
    const char *name = name_of(sink, record);
    const struct tree_attributes *to = &record->attributes;
    struct timespec times[2] = {{0, UTIME_OMIT}, timespec_of(to->mtime_ns)};
    char *no_part = NULL;
    int folder = here(sink);
    if (folder < 0)
        return;
    const char *why = in_the_way(sink, name, record);
    if (why || part_link(folder, name, record->target, &no_part) < 0) {
        complain(sink, name, why ? why : no_part);
        free(no_part);
        return;
    }
    if (utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        not_kept(sink, name, "time", errno);
    if (sink->options->archive &&
        fchownat(folder, name, to->uid, to->gid, AT_SYMLINK_NOFOLLOW) < 0)
        not_kept(sink, name, "owner", errno);
    remember(sink, name);
}

static int take_start(struct sink *sink, const struct tree_record *record)
{
    char *id = boot_id();
    sink->source_here = id && strcmp(id, record->name) == 0;
    free(id);
    sink->started = tree_starts(record);
    return sink->started ? 0 : -1;
}

/* Takes one record; -1, and has said why, if it has no place here. */
static int take(struct sink *sink, const struct tree_record *record)
{
    bool first = record->kind == TREE_FILE || record->kind == TREE_ENTER ||
                 record->kind == TREE_LINK;
    bool inside = sink->file.kind == TREE_FILE;
    if (!sink->started)
        return take_start(sink, record);
    if (first && sink->depth == 0 && !asked_for(sink, record->name)) {
        complain(sink, record->name, "nobody asked for it: nothing more is taken");
        return -1;
    }
    if (first && sink->base.fd < 0 && find_base(sink, record) < 0)
        return -1;
    if (inside != (record->kind == TREE_DATA || record->kind == TREE_WHOLE))
        return refuse("a record where it does not belong");
    switch (record->kind) {
    case TREE_ENTER: return take_enter(sink, record);
    case TREE_LEAVE: return take_leave(sink);
    case TREE_FILE: take_file(sink, record); return 0;
    case TREE_DATA: take_data(sink, record); return 0;
    case TREE_LINK: take_link(sink, record); return 0;
    case TREE_WHOLE:
        take_whole(sink, record);
        sink->file.kind = 0;
        return 0;
    case TREE_END:
        if (sink->depth)
            return refuse("it ends within a folder");
        sink->errors += record->errors;
        sink->ended = true;
        return 0;
    default:
        return refuse("a record of another kind of stream");
    }
}

static void take_all(struct sink *sink)
{
    struct tree_reader reader = {.fd = STDIN_FILENO};
    struct tree_record record = {0};
    const char *why = "it ends before its end";
    int got;
    while ((got = tree_next(&reader, &record, &why)) > 0 && !sink->ended)
        if (take(sink, &record) < 0)
            break;
    if (got <= 0 && !sink->ended)
        refuse(got < 0 ? why : "it ends before its end");
    if (sink->file_fd >= 0)
        let_go(sink, sink->file.size >= PART_LEAST);
    sink->depth = 0;
    bytes_close(&reader.buffer);
}

int tree_sink(const struct rdcp_options *options, const char *target, char **names,
              size_t count)
{
    struct sink *sink = calloc(1, sizeof *sink);
    if (!sink) {
        fputs("rdcp: out of memory\n", stderr);
        return 1;
    }
    sink->options = options;
    sink->target = target;
    sink->asked = names;
    sink->asked_count = count;
    sink->base.fd = sink->file_fd = -1;
    umask(0);
    if (options->verbose && !opens_below())
        fprintf(stderr, "rdcp: no openat2 in this kernel (Linux 5.6 has it): names are "
                        "opened one by one, through no symbolic link\n");
    take_all(sink);
    if (sink->base.fd >= 0 && !options->no_sync && syncfs(sink->base.fd) < 0)
        complain(sink, "", strerror(errno));
    if (options->verbose)
        fprintf(stderr, "rdcp: %llu files, %llu bytes\n",
                (unsigned long long)sink->files, (unsigned long long)sink->bytes);
    int status = !sink->ended || sink->errors;
    tree_base_close(&sink->base);
    tree_made_close(&sink->made);
    free(sink);
    return status;
}
