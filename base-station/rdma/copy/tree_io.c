/* Records of a tree to and from descriptors: see tree_io.h. */
#include "tree_io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "bytes.h"
#include "descriptors.h"
#include "quote.h"

enum { TOGETHER = 256 << 10, INPUT_BYTES = 1 << 20 };

void tree_line_open(struct tree_line *line, int in, int out)
{
    *line = (struct tree_line){.in = in, .out = out};
    fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
}

void tree_line_close(struct tree_line *line)
{
    fcntl(line->out, F_SETFL, fcntl(line->out, F_GETFL) & ~O_NONBLOCK);
    bytes_close(&line->input);
    bytes_close(&line->output);
}

/* Reads what there is. 1, 0 at the end, -1 with errno. */
static int fill(struct tree_line *line)
{
    bytes_drop(&line->input, line->used);
    line->used = 0;
    bytes_reserve(&line->input, INPUT_BYTES);
    ssize_t got = read(line->in, line->input.data + line->input.length, INPUT_BYTES);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN ? 1 : -1;
    line->input.length += (size_t)got;
    line->ended = got == 0;
    return got > 0;
}

/* Sends the queue, and these bytes behind it. */
static int send_all(struct tree_line *line, const uint8_t *bytes, size_t length)
{
    size_t sent = 0, queued = line->output.length;
    while (sent < queued + length) {
        size_t of_queue = sent < queued ? sent : queued, of_bytes = sent - of_queue;
        struct iovec row[] = {
            {line->output.data + of_queue, queued - of_queue},
            {(uint8_t *)(uintptr_t)bytes + of_bytes, length - of_bytes},
        };
        ssize_t got = writev(line->out, row, 2);
        if (got >= 0) {
            sent += (size_t)got;
        } else if (errno == EAGAIN) {
            struct pollfd polled[] = {
                {line->out, POLLOUT, 0},
                {line->ended || line->input.length > INPUT_BYTES ? -1 : line->in, POLLIN, 0},
            };
            poll(polled, 2, -1);
            if (polled[1].revents)
                fill(line); /* an error is seen again when a record is wanted */
        } else if (errno != EINTR) {
            if (errno != EPIPE) /* who left has said why */
                fprintf(stderr, "rdcp: cannot pass the stream on: %m\n");
            return -1;
        }
    }
    line->output.length = 0;
    return 0;
}

int tree_flush(struct tree_line *line)
{
    return send_all(line, NULL, 0);
}

int tree_write(struct tree_line *line, const struct tree_record *record)
{
    tree_put(&line->output, record);
    if (record->kind != TREE_DATA)
        return line->output.length >= TOGETHER ? tree_flush(line) : 0;
    if (record->length >= TOGETHER / 4)
        return send_all(line, record->bytes, record->length);
    bytes_add(&line->output, record->bytes, record->length);
    return line->output.length >= TOGETHER ? tree_flush(line) : 0;
}

int tree_next(struct tree_line *line, struct tree_record *record, bool waits,
              const char **why)
{
    for (;;) {
        size_t left = line->input.length - line->used;
        long length = 0;
        if (left)
            length = tree_get(record, (const uint8_t *)line->input.data + line->used, left,
                              why);
        if (length < 0)
            return -1;
        if (length > 0) {
            line->used += (size_t)length;
            return 1;
        }
        struct pollfd polled = {line->in, POLLIN, 0};
        bool there = !line->ended && poll(&polled, 1, 0) > 0;
        if (!there && !line->ended && !waits)
            return 0;
        *why = "the other side has left";
        if (!there && tree_flush(line) < 0)
            return -1;
        int got = line->ended ? 0 : fill(line);
        *why = got < 0 ? strerror(errno) : "it ends within a record";
        if (got <= 0)
            return got == 0 && !left ? 0 : -1;
    }
}

bool tree_starts(const struct tree_record *record)
{
    bool start = record->kind == TREE_START || record->kind == TREE_TARGET;
    if (start && (record->kind == TREE_TARGET || record->version == TREE_VERSION))
        return true;
    if (start)
        fprintf(stderr, "rdcp: the stream is version %u, this rdcp knows %d: ",
                (unsigned)record->version, TREE_VERSION);
    else
        fprintf(stderr, "rdcp: the stream does not say its version: ");
    fprintf(stderr, "install the same release on both machines\n");
    return false;
}

void tree_more_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void tree_say(const char *what, const char *of)
{
    struct bytes line = {0};
    bytes_text(&line, "rdcp: ");
    quote_shown(&line, what);
    bytes_text(&line, ": ");
    quote_shown(&line, of);
    bytes_text(&line, "\n");
    fputs(line.data, stderr);
    bytes_close(&line);
}

void tree_error(uint64_t *errors, const char *path, const char *what)
{
    tree_say(path, what);
    (*errors)++;
}

/* Years that do not fit are taken for the nearest that do, 1677 and 2262. */
static int64_t ns_of(const struct timespec *when)
{
    int64_t ns;
    if (__builtin_mul_overflow((int64_t)when->tv_sec, INT64_C(1000000000), &ns) ||
        __builtin_add_overflow(ns, (int64_t)when->tv_nsec, &ns))
        return when->tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

struct timespec timespec_of(int64_t ns)
{
    struct timespec when = {ns / 1000000000, ns % 1000000000};
    if (when.tv_nsec < 0) { /* before 1970 */
        when.tv_sec--;
        when.tv_nsec += 1000000000;
    }
    return when;
}

void tree_attributes_of(struct tree_attributes *into, const struct stat *state)
{
    *into = (struct tree_attributes){
        .mode = state->st_mode & 07777,
        .uid = state->st_uid,
        .gid = state->st_gid,
        .device = (uint32_t)state->st_dev,
        .inode = state->st_ino,
        .mtime_ns = ns_of(&state->st_mtim),
        .atime_ns = ns_of(&state->st_atim),
    };
}

char *boot_id(void)
{
    char text[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text) : -1;
    shut(&fd);
    size_t length = 0;
    while (got > 0 && length < (size_t)got && text[length] != '\n')
        length++;
    return tree_is_name(text, length) ? strndup(text, length) : NULL;
}

int open_below(int folder, const char *name, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    int fd = (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
        return fd;
    return openat(folder, name, flags | O_CLOEXEC | O_NOFOLLOW, mode);
}

int open_above(int base, const char **path)
{
    int fd = fcntl(base, F_DUPFD_CLOEXEC, 0);
    for (const char *slash; fd >= 0 && (slash = strchr(*path, '/')); *path = slash + 1) {
        char *name = text_of("%.*s", (int)(slash - *path), *path);
        int below = open_below(fd, name, O_RDONLY | O_DIRECTORY, 0);
        free(name);
        shut(&fd);
        fd = below;
    }
    return fd;
}

bool opens_below(void)
{
    struct open_how how = {0};
    return syscall(SYS_openat2, -1, "", &how, 0) >= 0 ||
           (errno != ENOSYS && errno != EPERM);
}

/* Where the file is, or the free place where it belongs. */
static struct tree_made_file *place_of(const struct tree_made *made, uint64_t device,
                                       uint64_t inode)
{
    size_t at = (size_t)((inode ^ device << 32) * UINT64_C(0x9e3779b97f4a7c15) >> 20);
    struct tree_made_file *file;
    do
        file = &made->file[at++ & (made->room - 1)];
    while (file->inode && (file->inode != inode || file->device != device));
    return file;
}

const uint64_t *tree_made_find(const struct tree_made *made, const struct stat *state)
{
    if (!made->count)
        return NULL;
    const struct tree_made_file *file = place_of(made, state->st_dev, state->st_ino);
    return file->inode ? &file->number : NULL;
}

static void grow(struct tree_made *made)
{
    struct tree_made more = {.room = made->room ? made->room * 2 : 64};
    more.file = allocated(calloc(more.room, sizeof *more.file));
    for (size_t i = 0; i < made->room; i++)
        if (made->file[i].inode)
            *place_of(&more, made->file[i].device, made->file[i].inode) = made->file[i];
    free(made->file);
    made->file = more.file;
    made->room = more.room;
}

void tree_made_add(struct tree_made *made, const struct stat *state, uint64_t number)
{
    if (made->count >= made->room / 4 * 3)
        grow(made);
    struct tree_made_file *file = place_of(made, state->st_dev, state->st_ino);
    made->count += !file->inode;
    *file = (struct tree_made_file){state->st_dev, state->st_ino, number};
}

void tree_made_close(struct tree_made *made)
{
    free(made->file);
    *made = (struct tree_made){0};
}

char *tree_name(const char *path)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    const char *name = path + begin;
    size_t length = end - begin;
    bool contents = length == 0 || (length == 1 && name[0] == '.') ||
                    (length == 2 && name[0] == '.' && name[1] == '.');
    return allocated(strndup(name, contents ? 0 : length));
}

enum { VALUE_MOST = 64 << 10 }; /* Linux's own limit, of the list of names too */

static bool is_acl(const char *name)
{
    return strncmp(name, "system.posix_acl_", 17) == 0;
}

/* Of the rest, user.* is everybody's and other kinds are root's. */
static bool wanted(const struct rdcp_options *options, const char *name)
{
    if (is_acl(name))
        return options->acls;
    return options->xattrs && strncmp(name, "system.", 7) != 0 &&
           (geteuid() == 0 || strncmp(name, "user.", 5) == 0);
}

static ssize_t list_names(int fd, char **names)
{
    *names = allocated(malloc(VALUE_MOST + 1));
    ssize_t length = flistxattr(fd, *names, VALUE_MOST);
    if (length < 0 && errno == ENOTSUP)
        length = 0;
    return length;
}

int tree_xattr_send(struct tree_line *line, const struct rdcp_options *options, int fd)
{
    char *names = NULL;
    uint8_t *value = allocated(malloc(VALUE_MOST));
    ssize_t length = list_names(fd, &names);
    int result = length < 0 ? -1 : 0;
    for (ssize_t at = 0; at < length && result == 0; at += (ssize_t)strlen(names + at) + 1) {
        struct tree_record record = {.kind = TREE_XATTR, .bytes = value};
        size_t size = strlen(names + at);
        if (!wanted(options, names + at) || !tree_is_name(names + at, size))
            continue;
        memcpy(record.name, names + at, size);
        ssize_t got = fgetxattr(fd, names + at, value, VALUE_MOST);
        record.length = (uint32_t)got;
        if (got >= 0)
            result = tree_write(line, &record) < 0 ? 1 : 0;
        else if (errno != ENODATA)
            result = -1;
    }
    free(names);
    free(value);
    return result;
}

void tree_xattr_take(struct tree_xattr **list, const struct tree_record *record)
{
    struct tree_xattr *one = allocated(malloc(sizeof *one + record->length));
    one->next = *list;
    one->length = record->length;
    memcpy(one->name, record->name, sizeof one->name);
    memcpy(one->value, record->bytes, record->length);
    *list = one;
}

void tree_xattr_close(struct tree_xattr **list)
{
    while (*list) {
        struct tree_xattr *next = (*list)->next;
        free(*list);
        *list = next;
    }
}

static bool is_among(const struct tree_xattr *list, const char *name)
{
    while (list && strcmp(list->name, name) != 0)
        list = list->next;
    return list;
}

int tree_xattr_apply(const struct tree_xattr *list, const struct rdcp_options *options,
                     int fd, bool acls)
{
    char *names = NULL;
    if (acls ? !options->acls : !options->xattrs)
        return 0;
    ssize_t length = list_names(fd, &names);
    uint8_t *value = allocated(malloc(VALUE_MOST));
    int result = length < 0 ? -1 : 0;
    for (ssize_t at = 0; at < length && result == 0; at += (ssize_t)strlen(names + at) + 1)
        if (wanted(options, names + at) && is_acl(names + at) == acls &&
            !is_among(list, names + at))
            result = fremovexattr(fd, names + at);
    for (; list && result == 0; list = list->next) {
        if (is_acl(list->name) != acls)
            continue;
        ssize_t got = fgetxattr(fd, list->name, value, VALUE_MOST);
        if (got != (ssize_t)list->length || memcmp(value, list->value, (size_t)got) != 0)
            result = fsetxattr(fd, list->name, list->value, list->length, 0);
    }
    free(names);
    free(value);
    return result;
}
