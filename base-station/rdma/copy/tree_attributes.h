/* What a file or folder has beside its content. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "tree_io.h"

void tree_attributes_of(struct tree_attributes *into, const struct stat *state);
struct timespec timespec_of(int64_t ns);

/* Extended attributes (-X) and access control lists (-A), which Linux keeps as such. */
struct tree_xattr {
    struct tree_xattr *next;
    uint32_t length;
    char name[TREE_NAME_MOST + 1];
    uint8_t value[];
};

/* Writes what `fd` has as records. -1 with errno. */
int tree_xattr_send(struct tree_line *line, const struct rdcp_options *options, int fd);

void tree_xattr_take(struct tree_xattr **list, const struct tree_record *record);
void tree_xattr_close(struct tree_xattr **list);

/* What could not be kept, and errno; NULL: all was. */
struct tree_lost {
    const char *what;
    int error;
};

/* Gives what is open at `fd` these attributes. */
struct tree_lost tree_keep(int fd, const struct tree_attributes *to,
                           const struct tree_xattr *xattrs,
                           const struct rdcp_options *options);
