/* The hash of a file's content: see tree_hash.h. */
#include "tree_hash.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#ifdef __x86_64__ /* detects the features of the processor, under the usual names */
#include <xxh_x86dispatch.h>
#endif

enum { PAGE = 4096 };

void tree_hash_open(struct tree_hash *hash, bool sha256)
{
    *hash = (struct tree_hash){.fast = allocated(XXH3_createState()),
                               .slow = sha256 ? allocated(EVP_MD_CTX_new()) : NULL,
                               .piece = allocated(malloc(TREE_DATA_MOST))};
}

void tree_hash_close(struct tree_hash *hash)
{
    XXH3_freeState(hash->fast);
    EVP_MD_CTX_free(hash->slow);
    free(hash->piece);
    *hash = (struct tree_hash){0};
}

void tree_hash_begin(struct tree_hash *hash)
{
    hash->at = 0;
    if (hash->slow)
        EVP_DigestInit_ex(hash->slow, EVP_sha256(), NULL);
    else
        XXH3_128bits_reset(hash->fast);
}

void tree_hash_add(struct tree_hash *hash, const void *bytes, size_t length)
{
    hash->at += length;
    if (hash->slow)
        EVP_DigestUpdate(hash->slow, bytes, length);
    else
        XXH3_128bits_update(hash->fast, bytes, length);
}

static size_t piece_of(uint64_t at, uint64_t end)
{
    return end - at < TREE_DATA_MOST ? (size_t)(end - at) : TREE_DATA_MOST;
}

void tree_hash_zeros(struct tree_hash *hash, uint64_t end)
{
    static const uint8_t zeros[TREE_DATA_MOST];
    while (hash->at < end)
        tree_hash_add(hash, zeros, piece_of(hash->at, end));
}

void tree_hash_end(struct tree_hash *hash, uint8_t into[TREE_HASH_BYTES])
{
    memset(into, 0, TREE_HASH_BYTES);
    if (hash->slow) {
        EVP_DigestFinal_ex(hash->slow, into, NULL);
        return;
    }
    XXH128_canonical_t digest;
    XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(hash->fast));
    memcpy(into, digest.digest, sizeof digest.digest);
}

/* Return the end of the data extent at or after `*at` and set `*at` to its start. Return `*at` if
 * no data precedes `end`. */
static uint64_t extent(int fd, uint64_t *at, uint64_t end)
{
    if (end <= PAGE) /* not worth a system call */
        return end;
    off_t data = lseek(fd, (off_t)*at, SEEK_DATA);
    if ((data < 0 && errno == ENXIO) || data >= (off_t)end)
        return *at;
    if (data >= 0)
        *at = (uint64_t)data; /* else the file system does not support holes */
    off_t hole = lseek(fd, (off_t)*at, SEEK_HOLE);
    return hole < 0 || (uint64_t)hole > end ? end : (uint64_t)hole;
}

int tree_hash_file(struct tree_hash *hash, int fd, uint64_t end, tree_take *take, void *taker)
{
    uint64_t at = hash->at, stop;
    while (at < end && (stop = extent(fd, &at, end)) > at) {
        tree_hash_zeros(hash, at);
        while (at < stop) {
            ssize_t got = pread(fd, hash->piece, piece_of(at, stop), (off_t)at);
            if (got < 0 && errno == EINTR)
                continue;
            if (got == 0)
                errno = EIO;
            if (got <= 0)
                return -1;
            tree_hash_add(hash, hash->piece, (size_t)got);
            if (take && !take(taker, at, hash->piece, (size_t)got))
                return -1;
            at += (uint64_t)got;
        }
    }
    tree_hash_zeros(hash, end);
    return 0;
}
