/* Records of a tree to and from descriptors: see tree_io.h. */
#include "tree_io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "quote.h"

enum { TOGETHER = 256 << 10, PIECE = 256 << 10 };

int tree_flush(struct tree_writer *writer)
{
    size_t sent = 0;
    while (sent < writer->pending.length) {
        ssize_t got = write(writer->fd, writer->pending.data + sent,
                            writer->pending.length - sent);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            fprintf(stderr, "rdcp: cannot pass the stream on: %s\n", strerror(errno));
            return -1;
        }
        sent += (size_t)got;
    }
    bytes_drop(&writer->pending, sent);
    return 0;
}

int tree_write(struct tree_writer *writer, const struct tree_record *record)
{
    if (tree_put(&writer->pending, record) < 0) {
        fprintf(stderr, "rdcp: out of memory\n");
        return -1;
    }
    return writer->pending.length >= TOGETHER ? tree_flush(writer) : 0;
}

int tree_next(struct tree_reader *reader, struct tree_record *record, const char **why)
{
    for (;;) {
        const uint8_t *at = (const uint8_t *)reader->buffer.data + reader->used;
        size_t left = reader->buffer.length - reader->used;
        long length = left ? tree_get(record, at, left, why) : 0;
        if (length < 0)
            return -1;
        if (length > 0) {
            reader->used += (size_t)length;
            return 1;
        }
        bytes_drop(&reader->buffer, reader->used);
        reader->used = 0;
        *why = strerror(ENOMEM);
        if (bytes_reserve(&reader->buffer, TOGETHER) < 0)
            return -1;
        ssize_t got = read(reader->fd, reader->buffer.data + reader->buffer.length,
                           TOGETHER);
        if (got < 0 && errno == EINTR)
            continue;
        *why = got < 0 ? strerror(errno) : "it ends within a record";
        if (got <= 0)
            return got == 0 && !left ? 0 : -1;
        reader->buffer.length += (size_t)got;
    }
}

bool tree_starts(const struct tree_record *record)
{
    bool start = record->kind == TREE_START;
    if (start && record->length == TREE_VERSION)
        return true;
    if (start)
        fprintf(stderr, "rdcp: the stream is version %u, this rdcp knows %d: ",
                record->length, TREE_VERSION);
    else
        fprintf(stderr, "rdcp: the stream does not say its version: ");
    fprintf(stderr, "install the same release on both machines\n");
    return false;
}

void tree_error(uint64_t *errors, const char *path, const char *what)
{
    struct bytes line = {0};
    bytes_text(&line, "rdcp: ");
    quote_shown(&line, path);
    bytes_format(&line, ": %s\n", what);
    if (line.data)
        fputs(line.data, stderr);
    bytes_close(&line);
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
    if (fd >= 0)
        close(fd);
    size_t length = 0;
    while (got > 0 && length < (size_t)got && text[length] != '\n')
        length++;
    return tree_is_name(text, length) ? strndup(text, length) : NULL;
}

int sum_of(int fd, uint64_t length, uint64_t *sum)
{
    XXH64_state_t *state = XXH64_createState();
    uint8_t *piece = malloc(PIECE);
    uint64_t done = 0;
    int result = state && piece ? 0 : -1;
    if (result == 0)
        XXH64_reset(state, 0);
    while (result == 0 && done < length) {
        size_t want = length - done < PIECE ? (size_t)(length - done) : PIECE;
        ssize_t got = pread(fd, piece, want, (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got == 0 ? EIO : errno;
            result = -1;
            break;
        }
        XXH64_update(state, piece, (size_t)got);
        done += (uint64_t)got;
    }
    if (result == 0)
        *sum = XXH64_digest(state);
    free(piece);
    XXH64_freeState(state);
    return result;
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

bool opens_below(void)
{
    struct open_how how = {0};
    return syscall(SYS_openat2, -1, "", &how, 0) >= 0 ||
           (errno != ENOSYS && errno != EPERM);
}
