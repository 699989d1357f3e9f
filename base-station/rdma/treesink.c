/* rdcp --serve-sink: makes files and trees below DST from the stream on stdin. Every
 * name is opened in the folder that is open already, through no symbolic link. */
#include "rdcp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "leashwork.h"
#include "treeio.h"

enum { DEPTH_MOST = 512 };

struct folder {
    int fd; /* -1: it could not be entered, and nothing below it can */
    bool made;
    struct tree_attributes attributes;
};

struct sink {
    const struct rdcp_options *options;
    const char *target;
    char *rename;     /* what the one source is called at DST; NULL = as it is called */
    int base;         /* the folder that the names at the top lie in */
    struct folder stack[DEPTH_MOST];
    int depth;
    struct tree_record file; /* the one being received */
    int file_fd;             /* -1: none, or given up */
    uint64_t errors, files, bytes;
    bool ended;
};

static int here(const struct sink *sink)
{
    return sink->depth ? sink->stack[sink->depth - 1].fd : sink->base;
}

static void complain(struct sink *sink, const char *name, const char *what)
{
    tree_error(&sink->errors, *name ? name : sink->target, what);
}

/* Where the first name goes, as cp decides: into DST if that is a directory. */
static int find_base(struct sink *sink, const struct tree_record *record)
{
    char *path = leashwork_file(sink->target);
    size_t length = path ? strlen(path) : 0;
    int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0 && length && (errno == ENOENT || errno == ENOTDIR)) {
        bool slash = path[length - 1] == '/';
        while (length > 1 && path[length - 1] == '/')
            path[--length] = '\0';
        char *name = strrchr(path, '/');
        if (!sink->options->many && name && (!slash || record->kind == TREE_ENTER)) {
            sink->rename = strdup(name + 1);
            name[name == path] = '\0';
            fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        } else {
            errno = ENOTDIR;
        }
    }
    if (fd < 0)
        fprintf(stderr, "rdcp: %s: %s\n", sink->target, strerror(errno));
    free(path);
    sink->base = fd;
    return fd < 0 ? -1 : 0;
}

static const char *name_of(const struct sink *sink, const struct tree_record *record)
{
    return sink->depth == 0 && sink->rename ? sink->rename : record->name;
}

static void set_attributes(const struct sink *sink, int fd,
                           const struct tree_attributes *to)
{
    struct timespec times[2] = {
        {to->atime_ns / 1000000000, to->atime_ns % 1000000000},
        {to->mtime_ns / 1000000000, to->mtime_ns % 1000000000},
    };
    bool owned = !sink->options->archive || fchown(fd, to->uid, to->gid) == 0;
    /* Who cannot give the owner away must not give the set-uid bit either. */
    fchmod(fd, to->mode & (sink->options->archive && owned ? 07777 : 0777));
    futimens(fd, times);
}

static int take_enter(struct sink *sink, const struct tree_record *record)
{
    const char *name = name_of(sink, record);
    int parent = here(sink);
    struct folder *folder = &sink->stack[sink->depth];
    if (sink->depth == DEPTH_MOST) {
        fprintf(stderr, "rdcp: %s: more than %d folders deep\n", name, DEPTH_MOST);
        return -1;
    }
    *folder = (struct folder){.fd = -1, .attributes = record->attributes};
    if (!*name && sink->depth) {
        fprintf(stderr, "rdcp: the stream names a folder without a name\n");
        return -1;
    }
    if (parent >= 0 && !*name) {
        folder->fd = dup(parent);
    } else if (parent >= 0) {
        folder->made = mkdirat(parent, name, 0700) == 0;
        if (folder->made || errno == EEXIST)
            folder->fd = open_below(parent, name, O_RDONLY | O_DIRECTORY, 0);
        if (folder->fd < 0)
            complain(sink, name, strerror(errno));
    }
    sink->depth++;
    return 0;
}

static int take_leave(struct sink *sink)
{
    if (!sink->depth)
        return -1;
    struct folder *folder = &sink->stack[--sink->depth];
    if (folder->fd < 0)
        return 0;
    if (folder->made || sink->options->archive)
        set_attributes(sink, folder->fd, &folder->attributes);
    close(folder->fd);
    return 0;
}

/* Is what has the name something that a file may take the place of? */
static const char *in_the_way(int folder, const char *name)
{
    struct stat state;
    if (fstatat(folder, name, &state, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? NULL : strerror(errno);
    if (S_ISREG(state.st_mode) || S_ISLNK(state.st_mode))
        return NULL;
    return S_ISDIR(state.st_mode) ? "a directory has that name"
                                  : "a device, a FIFO or a socket has that name";
}

static void drop_part(const struct sink *sink, const char *name)
{
    char part[256];
    if (part_name(part, name, PART_SOURCE) == 0)
        unlinkat(here(sink), part, 0);
    if (part_name(part, name, PART_SUFFIX) == 0)
        unlinkat(here(sink), part, 0);
}

/* Writes down of which file the part is. */
static int note_source(const struct sink *sink, const char *name,
                       const struct tree_record *record)
{
    char path[256];
    if (record->size < PART_LEAST || part_name(path, name, PART_SOURCE) < 0)
        return 0;
    unlinkat(here(sink), path, 0);
    int fd = open_below(here(sink), path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return -1;
    dprintf(fd, "%llu %llu %lld\n", (unsigned long long)record->size,
            (unsigned long long)record->inode, (long long)record->attributes.mtime_ns);
    return close(fd);
}

static int open_part(const struct sink *sink, const char *name,
                     const struct tree_record *record)
{
    char path[256];
    struct stat state;
    if (part_name(path, name, PART_SUFFIX) < 0)
        return -1;
    int fd = open_below(here(sink), path, O_RDWR | O_CREAT | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0)
        return -1;
    errno = EEXIST;
    if (fstat(fd, &state) == 0 && S_ISREG(state.st_mode) && state.st_nlink == 1 &&
        (uint64_t)state.st_size >= record->from && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        ftruncate(fd, (off_t)record->from) == 0 &&
        (record->from || note_source(sink, name, record) == 0))
        return fd;
    int error = errno == EWOULDBLOCK ? EBUSY : errno;
    close(fd);
    errno = error;
    return -1;
}

static void take_file(struct sink *sink, const struct tree_record *record)
{
    const char *name = name_of(sink, record);
    sink->file = *record;
    snprintf(sink->file.name, sizeof sink->file.name, "%s", name);
    sink->file_fd = -1;
    if (here(sink) < 0)
        return;
    const char *why = in_the_way(here(sink), name);
    if (!why && (sink->file_fd = open_part(sink, name, record)) < 0)
        why = strerror(errno);
    if (why)
        complain(sink, name, why);
}

static void give_up(struct sink *sink, const char *why, bool keep)
{
    complain(sink, sink->file.name, why);
    if (!keep)
        drop_part(sink, sink->file.name);
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
        if (got < 0)
            give_up(sink, strerror(errno), true);
        else
            done += (size_t)got;
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
    const char *name = sink->file.name;
    char part[256];
    if (sink->file_fd < 0)
        return;
    if (!record->length) {
        drop_part(sink, name); /* the source has said why */
        close(sink->file_fd);
        sink->file_fd = -1;
        return;
    }
    const char *why = NULL;
    if (ftruncate(sink->file_fd, (off_t)sink->file.size) < 0)
        why = strerror(errno);
    if (!why && sink->options->verify)
        why = verified(sink, record);
    if (!why) {
        set_attributes(sink, sink->file_fd, &sink->file.attributes);
        if (!sink->options->no_sync && sink->file.size >= PART_LEAST &&
            fsync(sink->file_fd) < 0)
            why = strerror(errno);
    }
    if (!why)
        why = in_the_way(here(sink), name);
    if (!why && (part_name(part, name, PART_SUFFIX) < 0 ||
                 renameat(here(sink), part, here(sink), name) < 0))
        why = strerror(errno);
    if (why) {
        give_up(sink, why, false);
        return;
    }
    if (sink->file.size >= PART_LEAST && part_name(part, name, PART_SOURCE) == 0)
        unlinkat(here(sink), part, 0);
    close(sink->file_fd);
    sink->file_fd = -1;
    sink->files++;
}

static void take_link(struct sink *sink, const struct tree_record *record)
{
    const char *name = name_of(sink, record);
    const struct tree_attributes *to = &record->attributes;
    struct timespec times[2] = {{0, UTIME_OMIT},
                                {to->mtime_ns / 1000000000, to->mtime_ns % 1000000000}};
    char part[256];
    if (here(sink) < 0)
        return;
    const char *why = in_the_way(here(sink), name);
    if (!why && part_name(part, name, PART_SUFFIX) < 0)
        why = strerror(errno);
    if (!why) {
        unlinkat(here(sink), part, 0);
        if (symlinkat(record->target, here(sink), part) < 0 ||
            renameat(here(sink), part, here(sink), name) < 0)
            why = strerror(errno);
    }
    if (why) {
        complain(sink, name, why);
        return;
    }
    utimensat(here(sink), name, times, AT_SYMLINK_NOFOLLOW);
    if (sink->options->archive &&
        fchownat(here(sink), name, to->uid, to->gid, AT_SYMLINK_NOFOLLOW) < 0)
        complain(sink, name, strerror(errno));
    sink->files++;
}

/* Takes one record; -1 if it has no place here. */
static int take(struct sink *sink, const struct tree_record *record)
{
    bool first = record->kind == TREE_FILE || record->kind == TREE_ENTER ||
                 record->kind == TREE_LINK;
    bool inside = sink->file.kind == TREE_FILE;
    if (first && sink->base < 0 && find_base(sink, record) < 0)
        return -1;
    if (inside != (record->kind == TREE_DATA || record->kind == TREE_WHOLE)) {
        fprintf(stderr, "rdcp: the stream has a record where it does not belong\n");
        return -1;
    }
    switch (record->kind) {
    case TREE_START:
        return record->length == TREE_VERSION ? 0 : -1;
    case TREE_ENTER:
        return take_enter(sink, record);
    case TREE_LEAVE:
        return take_leave(sink);
    case TREE_FILE:
        take_file(sink, record);
        return 0;
    case TREE_DATA:
        take_data(sink, record);
        return 0;
    case TREE_WHOLE:
        take_whole(sink, record);
        sink->file.kind = 0;
        return 0;
    case TREE_LINK:
        take_link(sink, record);
        return 0;
    case TREE_END:
        sink->errors += record->errors;
        sink->ended = sink->depth == 0;
        return sink->ended ? 0 : -1;
    default:
        return -1;
    }
}

int tree_sink(const struct rdcp_options *options, const char *target)
{
    struct sink *sink = calloc(1, sizeof *sink);
    struct tree_reader reader = {.fd = STDIN_FILENO};
    struct tree_record record = {0};
    const char *why = "it ends before its end";
    if (!sink)
        return 1;
    sink->options = options;
    sink->target = target;
    sink->base = sink->file_fd = -1;
    umask(0);
    if (options->verbose && !opens_below())
        fprintf(stderr, "rdcp: no openat2 in this kernel (Linux 5.6 has it): names are "
                        "opened one by one, through no symbolic link\n");
    int got;
    while ((got = tree_next(&reader, &record, &why)) > 0 && !sink->ended)
        if (take(sink, &record) < 0)
            break;
    if (got <= 0 && !sink->ended)
        fprintf(stderr, "rdcp: the stream: %s\n", why);
    if (sink->base >= 0 && !options->no_sync && syncfs(sink->base) < 0)
        complain(sink, target, strerror(errno));
    if (options->verbose)
        fprintf(stderr, "rdcp: %llu files, %llu bytes\n",
                (unsigned long long)sink->files, (unsigned long long)sink->bytes);
    int status = !sink->ended || sink->errors;
    free(sink->rename);
    free(sink);
    bytes_close(&reader.buffer);
    return status;
}
