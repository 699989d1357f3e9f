/* Records of a tree to and from descriptors, and what both sides share. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "tree.h"
#include "tree_sides.h"

/* Both directions between the two sides. Who waits to write goes on reading, so that the
 * two never wait for each other. */
struct tree_line {
    int in, out;
    struct bytes input, output;
    size_t used; /* of the input */
    bool held;   /* what is queued waits for tree_flush() alone */
    size_t most; /* of the input while the output waits: more is not read */
    bool ended;  /* nothing more will come in */
    bool lost;   /* nothing more will go out; if the other has not left, a line says why */
};

void tree_line_open(struct tree_line *line, int in, int out);
void tree_line_close(struct tree_line *line);

/* Queues a record; data goes out at once. */
void tree_write(struct tree_line *line, const struct tree_record *record);
void tree_flush(struct tree_line *line);

/* 1 with a record, 0 at the end of the stream or, unless it `waits`, where there is none
 * yet; -1 with a reason. What the record points to lasts until the next call. What is
 * queued goes out before it waits, unless it is held. */
int tree_next(struct tree_line *line, struct tree_record *record, bool waits,
              const char **why);

/* One line on stderr: rdcp: WHAT: OF, in which names may do no harm. */
void tree_say(const char *what, const char *of);

/* Two texts of tree_error() that have a code of their own. */
#define TREE_DIFFERS "its content is not what the manifest says"
#define TREE_UNLISTED "is not in the manifest"

/* Counts an error and prints it: rdcp: PATH: what. After tree_errors_json(true) as JSON:
 * {"path": PATH, "code": CODE, "error": what}; CODE is "missing", "differs", "unlisted"
 * or "failed". */
void tree_error(uint64_t *errors, const char *path, const char *what);
void tree_errors_json(bool json);

/* What no other machine has, nor this one after its next start; to free, or NULL. */
char *boot_id(void);

/* Opens a name of one component, through no symbolic link and not above `folder`. */
int open_below(int folder, const char *name, int flags, mode_t mode);

/* The folder of `path`, which becomes its last component, through no link; to close. -1
 * with errno. */
int open_above(int base, const char **path);

/* What is in a folder but . and .., in the order of the names' bytes: how many; each, and
 * the row, is to free. -1 with errno. */
int tree_entries(int folder, struct dirent ***entries);

/* Files by device and inode: what a sink has made, so that no second source takes its
 * name; what a source has announced, so that another name of it becomes a hard link. */
struct tree_made {
    struct tree_made_file {
        uint64_t device, inode; /* 0 = a free place */
        uint64_t number;
    } *file; /* to free */
    size_t count, room; /* a power of two, at least a quarter of it free */
};

/* Its number; NULL: it is not among them. */
const uint64_t *tree_made_find(const struct tree_made *made, const struct stat *state);

/* It is about to be found or added: in a large table each place is a cache miss. */
void tree_made_prefetch(const struct tree_made *made, const struct stat *state);

void tree_made_close(struct tree_made *made);
void tree_made_add(struct tree_made *made, const struct stat *state, uint64_t number);

/* The name under which cp copies `path`: its last component, without slashes at the
 * end; "" where the contents go into DST itself (".", "..", "/"). To free. */
char *tree_name(const char *path);

/* Is it one of --exclude's? `path` is below the source. */
bool tree_excluded(const struct rdcp_options *options, const char *path, bool folder);
