/* Files by device and inode: what a sink has made, so that no second source takes its
 * name; what a source has announced, so that another name of it becomes a hard link. */
#ifndef TREE_MADE_H
#define TREE_MADE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

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

#endif
