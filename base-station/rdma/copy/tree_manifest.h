/* A list of SHA-256 sums and paths, as sha256sum(1) writes and reads it. */
#pragma once

#include <stdint.h>

#include "leash_work.h"

struct tree_manifest {
    struct words paths; /* of regular files, from the folder that they are below */
    size_t skip;        /* so much of each is not written */
};

/* Reads each again from the disk, writes its line on stdout; what is wrong with a file is
 * said and counted. */
void tree_manifest_write(struct tree_manifest *manifest, int base, uint64_t *errors);

/* Compares the tree at `target` with the list on stdin, both ways; an exit status. */
int tree_manifest_check(const char *target);
