/* Metadata of a file or folder: see tree_attributes.h. */
#include "tree_attributes.h"

#include <errno.h>

/* Clamp years outside the range of an int64_t to its limits, 1677 and 2262. */
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
        .device = (uint32_t)state->st_dev,
        .inode = state->st_ino,
        .mtime_ns = ns_of(&state->st_mtim),
        .atime_ns = ns_of(&state->st_atim),
    };
}

struct tree_lost tree_keep(int fd, const struct tree_attributes *to)
{
    struct timespec times[2] = {timespec_of(to->atime_ns), timespec_of(to->mtime_ns)};
    mode_t mode = to->mode & 0777;
    struct tree_lost lost = {0};
    struct stat state;
    if ((fstat(fd, &state) < 0 || (state.st_mode & 07777) != mode) && fchmod(fd, mode) < 0)
        lost = (struct tree_lost){"mode", errno};
    if (futimens(fd, times) < 0)
        lost = (struct tree_lost){"time", errno};
    return lost;
}
