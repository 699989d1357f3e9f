/* The files that this run has made, so that no second source takes one's name. */
#ifndef TREE_MADE_H
#define TREE_MADE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct tree_made {
    struct tree_made_file {
        uint64_t device, inode; /* 0 = a free place */
    } *file;
    size_t count, room; /* a power of two, at least a quarter of it free */
};

bool tree_made_has(const struct tree_made *made, const struct stat *state);

/* 0, or -1 when memory is short. */
int tree_made_add(struct tree_made *made, const struct stat *state);
void tree_made_close(struct tree_made *made);

#endif
