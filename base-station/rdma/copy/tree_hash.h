/* The hash of a file's content: XXH3 of 128 bits, or SHA-256. A hole is zeros, and is not
 * read. */
#ifndef TREE_HASH_H
#define TREE_HASH_H

#include <stdbool.h>
#include <stdint.h>

#include "leash_work.h"
#include "tree.h"

struct tree_hash {
    void *fast;     /* XXH3_state_t */
    void *slow;     /* EVP_MD_CTX; NULL: fast */
    uint64_t at;    /* so many bytes are in it */
};

void tree_hash_open(struct tree_hash *hash, bool sha256);
void tree_hash_close(struct tree_hash *hash);

void tree_hash_begin(struct tree_hash *hash);
void tree_hash_add(struct tree_hash *hash, const void *bytes, size_t length);
void tree_hash_zeros(struct tree_hash *hash, uint64_t end); /* up to there */
void tree_hash_end(struct tree_hash *hash, uint8_t into[TREE_HASH_BYTES]);

/* Goes on with what `fd` has, up to `end`. -1 with errno; EIO if it is shorter. */
int tree_hash_file(struct tree_hash *hash, int fd, uint64_t end);

/* The extent of data at or after `at`, at most up to `end`: 1; 0: there is none. */
int tree_extent(int fd, uint64_t *at, uint64_t end, uint64_t *hole);

/* A list of SHA-256 sums and paths, as sha256sum(1) writes and reads it. */
struct tree_manifest {
    struct words paths; /* of regular files, from the folder that they are below */
    size_t skip;        /* so much of each, and the slash behind it, is not written */
};

/* Reads each again from the disk, writes its line on stdout. -1 where that is not
 * possible; what is wrong with a file is said and counted. */
int tree_manifest_write(struct tree_manifest *manifest, int base, uint64_t *errors);

/* Compares the tree at `target` with the list on stdin, both ways; an exit status. */
int tree_manifest_check(const char *target);

#endif
