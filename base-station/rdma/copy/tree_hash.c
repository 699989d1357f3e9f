/* The hash of a file's content: see tree_hash.h. */
#include "tree_hash.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { PIECE = 256 << 10, PAGE = 4096 };

void tree_hash_open(struct tree_hash *hash, bool sha256)
{
    *hash = (struct tree_hash){.fast = allocated(XXH3_createState()),
                               .slow = sha256 ? allocated(EVP_MD_CTX_new()) : NULL};
}

void tree_hash_close(struct tree_hash *hash)
{
    XXH3_freeState(hash->fast);
    EVP_MD_CTX_free(hash->slow);
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

void tree_hash_zeros(struct tree_hash *hash, uint64_t end)
{
    static const uint8_t zeros[PIECE];
    while (hash->at < end)
        tree_hash_add(hash, zeros,
                      end - hash->at < PIECE ? (size_t)(end - hash->at) : PIECE);
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

int tree_extent(int fd, uint64_t *at, uint64_t end, uint64_t *hole)
{
    *hole = end;
    if (*at >= end)
        return 0;
    if (end <= PAGE) /* it would not pay to ask */
        return 1;
    off_t data = lseek(fd, (off_t)*at, SEEK_DATA);
    if ((data < 0 && errno == ENXIO) || data >= (off_t)end)
        return 0;
    if (data >= 0)
        *at = (uint64_t)data; /* else a file system that knows no holes */
    off_t stop = lseek(fd, (off_t)*at, SEEK_HOLE);
    *hole = stop < 0 || (uint64_t)stop > end ? end : (uint64_t)stop;
    return 1;
}

int tree_hash_file(struct tree_hash *hash, int fd, uint64_t end)
{
    uint8_t *piece = allocated(malloc(PIECE));
    uint64_t at = hash->at, hole;
    int result = 0;
    while (result == 0 && tree_extent(fd, &at, end, &hole)) {
        tree_hash_zeros(hash, at);
        while (result == 0 && at < hole) {
            size_t want = hole - at < PIECE ? (size_t)(hole - at) : PIECE;
            ssize_t got = pread(fd, piece, want, (off_t)at);
            if (got < 0 && errno == EINTR)
                continue;
            if (got <= 0) {
                errno = got == 0 ? EIO : errno;
                result = -1;
                break;
            }
            tree_hash_add(hash, piece, (size_t)got);
            at += (uint64_t)got;
        }
    }
    if (result == 0)
        tree_hash_zeros(hash, end);
    free(piece);
    return result;
}
