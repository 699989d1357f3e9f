/* Hash of a file's content: XXH3 of 128 bits, or SHA-256. Holes are hashed as zeros without reading
 * them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tree.h"

struct tree_hash {
    void *fast;     /* XXH3_state_t */
    void *slow;     /* EVP_MD_CTX; NULL: use `fast` */
    uint8_t *piece; /* read buffer for files */
    uint64_t at;    /* number of bytes hashed */
};

void tree_hash_open(struct tree_hash *hash, bool sha256);
void tree_hash_close(struct tree_hash *hash);

void tree_hash_begin(struct tree_hash *hash);
void tree_hash_add(struct tree_hash *hash, const void *bytes, size_t length);
void tree_hash_zeros(struct tree_hash *hash, uint64_t end); /* up to offset `end` */
void tree_hash_end(struct tree_hash *hash, uint8_t into[TREE_HASH_BYTES]);

/* Callback for a piece that was read and hashed. Return false to stop. */
typedef bool tree_take(void *taker, uint64_t at, const uint8_t *bytes, size_t length);

/* Continue the hash with the content of `fd` up to `end`, in pieces of at most TREE_DATA_MOST
 * bytes. Return -1 with errno on failure; EIO if the file is shorter. */
int tree_hash_file(struct tree_hash *hash, int fd, uint64_t end, tree_take *take, void *taker);
