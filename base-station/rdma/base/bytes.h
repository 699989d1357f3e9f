/* Growable byte buffer, always followed by a NUL, and text made safe for a shell or for display. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct bytes {
    char *data; /* NULL while empty */
    size_t length;
    size_t room;
    bool secret; /* may hold a key: memory that falls free is wiped */
};

/* Return `memory`. If it is NULL, print an out-of-memory error and end the program; the peer treats
 * that as a lost connection and publishes nothing. */
void *allocated(void *memory);

void bytes_reserve(struct bytes *bytes, size_t more);
void bytes_add(struct bytes *bytes, const void *data, size_t length);
void bytes_text(struct bytes *bytes, const char *text);
void bytes_format(struct bytes *bytes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Append the available data with one read(2), at most `most` bytes; return its result. */
ssize_t bytes_read(struct bytes *bytes, int fd, size_t most);

/* Format a new string; the caller frees it. */
char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Return true if the strings are equal, or both NULL. */
bool same_text(const char *one, const char *other);

/* Remove the first `length` bytes. */
void bytes_drop(struct bytes *bytes, size_t length);

/* Remove the first line and return it without its newline, as a new string that the caller frees.
 * NULL if no complete line is available. */
char *bytes_line(struct bytes *bytes);

/* Append the bytes of `data` as hex digits. */
void hex_add(struct bytes *bytes, const void *data, size_t length);

/* Generate a secret or an unguessable name: `digits` hex digits and a NUL. Return 0, or -1 with
 * errno. */
int hex_random(char *into, size_t digits);

void bytes_close(struct bytes *bytes);

/* Append `text` as one word that sh, csh and fish all read as exactly `text`. A leading "~/" stays
 * outside the quotes if `home` is set. */
void quote_word(struct bytes *bytes, const char *text, bool home);

/* Append `text` for display: control bytes as \n, \xNN. */
void quote_shown(struct bytes *bytes, const char *text);
void quote_shown_bytes(struct bytes *bytes, const char *text, size_t length);
