/* Metadata of a file or folder: mode, owner, times, extended attributes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "tree_io.h"

void tree_attributes_of(struct tree_attributes *into, const struct stat *state);
struct timespec timespec_of(int64_t ns);

/* Extended attributes (-X) and access control lists (-A), both stored by Linux as xattrs. */
struct tree_xattr {
    struct tree_xattr *next;
    uint32_t length;
    char name[TREE_NAME_MOST + 1];
    uint8_t value[];
};

/* Write the extended attributes of `fd` as records. Return -1 with errno on failure. */
int tree_xattr_send(struct tree_line *line, const struct rdcp_options *options, int fd);

void tree_xattr_take(struct tree_xattr **list, const struct tree_record *record);
void tree_xattr_close(struct tree_xattr **list);

/* Metadata that could not be kept, and errno. NULL if everything was kept. */
struct tree_lost {
    const char *what;
    int error;
};

/* Apply these attributes to the open file or folder `fd`. */
struct tree_lost tree_keep(int fd, const struct tree_attributes *to,
                           const struct tree_xattr *xattrs,
                           const struct rdcp_options *options);
