/* Records of a tree to and from descriptors, and helpers shared by both sides. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "tree.h"

/*
 * Both directions between the two sides. A side that is blocked on writing continues to read, so
 * that the two sides cannot deadlock.
 */
struct tree_line {
    int in, out;
    struct bytes input, output;
    size_t used; /* bytes consumed from the input */
    bool held;   /* only tree_flush() sends the queue */
    size_t most; /* limit on buffered input while the output is blocked */
    bool ended;  /* end of input reached */
    bool lost;   /* output failed; the reason was printed unless the peer closed */
};

void tree_line_open(struct tree_line *line, int in, int out);
void tree_line_close(struct tree_line *line);

/* Queue a record. Large data records are written at once. */
void tree_write(struct tree_line *line, const struct tree_record *record);
void tree_flush(struct tree_line *line);

/*
 * Return 1 with a record, 0 at the end of the stream or, unless `waits`, if no record is available
 * yet, and -1 with a reason. Pointers in the record are valid until the next call. The queued
 * output is flushed before waiting, unless it is held.
 */
int tree_next(struct tree_line *line, struct tree_record *record, bool waits,
              const char **why);

/* Return an id that is unique to this boot of this machine, to be freed by the caller, or NULL. */
char *boot_id(void);

/* Open a name of one component. Follow no symbolic link and do not leave `folder`. */
int open_below(int folder, const char *name, int flags, mode_t mode);

/*
 * List the entries of a folder except . and .., sorted by the bytes of their names. Return their
 * number; the caller frees each entry and the array. Return -1 with errno on failure.
 */
int tree_entries(int folder, struct dirent ***entries);

/*
 * Set of files by device and inode. A sink stores the files it has made, so that a second source
 * cannot replace them; a source stores the folders it has walked before the target was known.
 */
struct tree_made {
    struct tree_made_file {
        uint64_t device, inode; /* 0 = a free slot */
    } *file; /* to free */
    size_t count, room; /* a power of two, at least a quarter of it free */
};

bool tree_made_find(const struct tree_made *made, const struct stat *state);

/*
 * Prefetch the file's slot before a lookup or an insertion: in a large set each slot is a cache
 * miss.
 */
void tree_made_prefetch(const struct tree_made *made, const struct stat *state);

void tree_made_close(struct tree_made *made);
void tree_made_add(struct tree_made *made, const struct stat *state);

/*
 * Return the name under which cp would copy `path`: its last component, without trailing slashes,
 * or "" if the contents go into DST itself (".", "..", "/"). The caller frees the text.
 */
char *tree_name(const char *path);

/* --- metadata of a file or folder --- */

struct tree_attributes tree_attributes_of(const struct stat *state);
struct timespec timespec_of(int64_t ns);

/* Metadata that could not be kept, and errno. NULL if everything was kept. */
struct tree_lost {
    const char *what;
    int error;
};

/* Apply the mode and the times to the open file or folder `fd`. */
struct tree_lost tree_keep(int fd, const struct tree_attributes *to);
