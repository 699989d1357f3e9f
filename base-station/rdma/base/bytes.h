/* A growable row of bytes, always ended by a NUL beyond its length. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct bytes {
    char *data; /* NULL while empty */
    size_t length;
    size_t room;
};

/* The same pointer; without memory the program ends, with a line that says so: whoever is
 * at the other end takes that for a cut, and nothing is published. */
void *allocated(void *memory);

void bytes_reserve(struct bytes *bytes, size_t more);
void bytes_add(struct bytes *bytes, const void *data, size_t length);
void bytes_text(struct bytes *bytes, const char *text);
void bytes_format(struct bytes *bytes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends what read(2) has, which returned this: at most `most` bytes. */
ssize_t bytes_read(struct bytes *bytes, int fd, size_t most);

/* A string of its own, to free. */
char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Are they the same, or both NULL? */
bool same_text(const char *one, const char *other);

/* Forgets the first `length` bytes. */
void bytes_drop(struct bytes *bytes, size_t length);

/* Takes out the first line, without its newline, as a string of its own to free;
 * NULL where no whole line is there yet. */
char *bytes_line(struct bytes *bytes);

void bytes_close(struct bytes *bytes);
