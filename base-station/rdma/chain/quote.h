/* Text made safe for a shell, and bytes as hexadecimal words. */
#ifndef QUOTE_H
#define QUOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"

/* Appends `text` as one word that sh, csh and fish all take for exactly `text`.
 * A leading "~/" stays outside the quotes if `home` says so. */
int quote_word(struct bytes *into, const char *text, bool home);

/* Appends `text` for a person's eyes: control bytes as \n, \xNN. */
int quote_shown(struct bytes *into, const char *text);

int hex_add(struct bytes *into, const void *data, size_t length);

/* Reads exactly `length` bytes from twice as many digits; -1 if they are not that. */
int hex_read(const char *digits, void *data, size_t length);

/* A string of its own without NUL inside; NULL if the digits are none. */
char *hex_text(const char *digits);

#endif
