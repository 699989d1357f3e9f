/* Records of a tree to and from descriptors, and what source, sink and list share. */
#ifndef TREE_IO_H
#define TREE_IO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "tree.h"

struct tree_writer {
    int fd;
    struct bytes pending; /* small records go out together */
};

/* 0, or -1 after a line on stderr: the reader has left. */
int tree_write(struct tree_writer *writer, const struct tree_record *record);
int tree_flush(struct tree_writer *writer);

struct tree_reader {
    int fd;
    struct bytes buffer;
    size_t used;
};

/* 1 with a record, 0 at the end of the stream, -1 with a reason. What the record points
 * to lasts until the next call. */
int tree_next(struct tree_reader *reader, struct tree_record *record, const char **why);

/* Is it the start of a stream of this version? One line on stderr if it is not. */
bool tree_starts(const struct tree_record *record);

/* One line on stderr: rdcp: PATH: what. Counts it. */
void tree_error(uint64_t *errors, const char *path, const char *what);

void tree_attributes_of(struct tree_attributes *into, const struct stat *state);

struct timespec timespec_of(int64_t ns);

/* What no other machine has, nor this one after its next start; to free, or NULL. */
char *boot_id(void);

/* XXH64 of the first `length` bytes of `fd`, holes as zeros. -1 with errno; EIO if it
 * is shorter. */
int sum_of(int fd, uint64_t length, uint64_t *sum);

/* openat2 below `folder` through no symbolic link. Without that call (before Linux 5.6,
 * and where a container's filter refuses it): openat with O_NOFOLLOW, which is the same
 * for a name of one component. */
int open_below(int folder, const char *name, int flags, mode_t mode);

/* Has this kernel got openat2? */
bool opens_below(void);

#endif
