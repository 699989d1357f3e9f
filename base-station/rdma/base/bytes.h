/* A growable row of bytes, always ended by a NUL beyond its length. */
#ifndef BYTES_H
#define BYTES_H

#include <stdarg.h>
#include <stddef.h>

struct bytes {
    char *data; /* NULL while empty */
    size_t length;
    size_t room;
};

/* Each returns 0, or -1 with errno ENOMEM; what was there before stays. */
int bytes_reserve(struct bytes *bytes, size_t more);
int bytes_add(struct bytes *bytes, const void *data, size_t length);
int bytes_text(struct bytes *bytes, const char *text);
int bytes_format(struct bytes *bytes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Forgets the first `length` bytes. */
void bytes_drop(struct bytes *bytes, size_t length);

/* Takes out the first line, without its newline, as a string of its own to free;
 * NULL where no whole line is there yet. */
char *bytes_line(struct bytes *bytes);

void bytes_close(struct bytes *bytes);

#endif
