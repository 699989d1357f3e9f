/* Shared secret: the bytes of a file, a descriptor or RDPIPE_KEY, never of argv. */
#pragma once

#include <stddef.h>

#include "error.h"

enum { KEY_LEAST = 16, KEY_MOST = 1024, KEY_DIFFERENT = 8 };

struct key {
    unsigned char bytes[KEY_MOST + 1]; /* the extra byte detects a key that is too long */
    size_t length;
};

/* Read the key. `file` may be NULL and `fd` -1. RDPIPE_KEY is the last resort and is removed from
 * the environment. One newline at the end is ignored. Return 0, or -1 with an error. */
int key_open(struct key *key, const char *file, int fd, struct error *error);

/* Write a key of 32 random bytes, in hex, to a new file that only its owner can read. */
int key_make(const char *file, struct error *error);

void key_close(struct key *key);
