/* The hash of a file's content: XXH3 of 128 bits, or SHA-256. A hole is zeros, and is not
 * read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tree.h"

struct tree_hash {
    void *fast;     /* XXH3_state_t */
    void *slow;     /* EVP_MD_CTX; NULL: fast */
    uint8_t *piece; /* of a file that is read */
    uint64_t at;    /* so many bytes are in it */
};

void tree_hash_open(struct tree_hash *hash, bool sha256);
void tree_hash_close(struct tree_hash *hash);

void tree_hash_begin(struct tree_hash *hash);
void tree_hash_add(struct tree_hash *hash, const void *bytes, size_t length);
void tree_hash_zeros(struct tree_hash *hash, uint64_t end); /* up to there */
void tree_hash_end(struct tree_hash *hash, uint8_t into[TREE_HASH_BYTES]);

/* Takes a piece that was read and hashed. False: no more of them. */
typedef bool tree_take(void *taker, uint64_t at, const uint8_t *bytes, size_t length);

/* Goes on with what `fd` has, up to `end`, in pieces of at most TREE_DATA_MOST bytes.
 * -1 with errno; EIO if it is shorter. */
int tree_hash_file(struct tree_hash *hash, int fd, uint64_t end, tree_take *take,
                   void *taker);
