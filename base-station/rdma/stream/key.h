/* The shared secret: bytes of a file, of a descriptor or of RDPIPE_KEY, never of argv. */
#pragma once

#include <stddef.h>

#include "trouble.h"

enum { KEY_LEAST = 16, KEY_MOST = 1024 };

struct key {
    unsigned char bytes[KEY_MOST + 1]; /* one more shows that there are too many */
    size_t length;
};

/* `file` may be NULL and `fd` -1; RDPIPE_KEY is the last resort and leaves the
 * environment. One newline at the end does not count. 0, or -1 with a trouble. */
int key_open(struct key *key, const char *file, int fd, struct trouble *trouble);

/* Makes a key of 32 random bytes, in hex, in a new file that only its owner reads. */
int key_make(const char *file, struct trouble *trouble);

void key_close(struct key *key);
