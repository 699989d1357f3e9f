/* Records of a tree to and from descriptors, and what both sides share. */
#ifndef TREE_IO_H
#define TREE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "tree.h"
#include "tree_sides.h"

/* Both directions between the two sides. Who waits to write goes on reading, so that the
 * two never wait for each other. */
struct tree_line {
    int in, out;
    struct bytes input, output;
    size_t used; /* of the input */
    bool ended;  /* nothing more will come in */
};

void tree_line_open(struct tree_line *line, int in, int out);
void tree_line_close(struct tree_line *line);

/* Queues a record; data goes out at once. 0, or -1 after a line on stderr. */
int tree_write(struct tree_line *line, const struct tree_record *record);
int tree_flush(struct tree_line *line);

/* 1 with a record, 0 at the end of the stream or, unless it `waits`, where there is none
 * yet; -1 with a reason. What the record points to lasts until the next call. What is
 * queued goes out before it waits. */
int tree_next(struct tree_line *line, struct tree_record *record, bool waits,
              const char **why);

/* Is it the first record of a stream of this version? One line on stderr if not. */
bool tree_starts(const struct tree_record *record);

/* One line on stderr: rdcp: WHAT: OF, in which names may do no harm. */
void tree_say(const char *what, const char *of);

/* rdcp: PATH: what. Counts it. */
void tree_error(uint64_t *errors, const char *path, const char *what);

void tree_attributes_of(struct tree_attributes *into, const struct stat *state);
struct timespec timespec_of(int64_t ns);

/* Allows as many open files as this user may have. */
void tree_more_files(void);

/* What no other machine has, nor this one after its next start; to free, or NULL. */
char *boot_id(void);

/* openat2 below `folder` through no symbolic link. Without that call (before Linux 5.6,
 * and where a container's filter refuses it): openat with O_NOFOLLOW, which is the same
 * for a name of one component. */
int open_below(int folder, const char *name, int flags, mode_t mode);

/* The folder of `path`, which becomes its last component, through no link; to close. -1
 * with errno. */
int open_above(int base, const char **path);

/* Has this kernel got openat2? */
bool opens_below(void);

/* Files by device and inode: what a sink has made, so that no second source takes its
 * name; what a source has announced, so that another name of it becomes a hard link. */
struct tree_made {
    struct tree_made_file {
        uint64_t device, inode; /* 0 = a free place */
        uint64_t number;
    } *file;
    size_t count, room; /* a power of two, at least a quarter of it free */
};

/* Its number; NULL: it is not among them. */
const uint64_t *tree_made_find(const struct tree_made *made, const struct stat *state);

void tree_made_add(struct tree_made *made, const struct stat *state, uint64_t number);
void tree_made_close(struct tree_made *made);

/* The name under which cp copies `path`: its last component, without slashes at the
 * end; "" where the contents go into DST itself (".", "..", "/"). To free. */
char *tree_name(const char *path);

/* Extended attributes (-X) and access control lists (-A), which Linux keeps as such. */
struct tree_xattr {
    struct tree_xattr *next;
    uint32_t length;
    char name[TREE_NAME_MOST + 1];
    uint8_t value[];
};

/* Writes what `fd` has as records. -1 with errno; 1: the stream has no reader. */
int tree_xattr_send(struct tree_line *line, const struct rdcp_options *options, int fd);

void tree_xattr_take(struct tree_xattr **list, const struct tree_record *record);
void tree_xattr_close(struct tree_xattr **list);

/* Gives `fd` these and no others, of ACLs or of the rest: those are set before the mode,
 * which might forbid it, ACLs after it, which would change them. -1 with errno. */
int tree_xattr_apply(const struct tree_xattr *list, const struct rdcp_options *options,
                     int fd, bool acls);

#endif
