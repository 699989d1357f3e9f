/* Text made safe for a shell, and bytes as hexadecimal words. */
#ifndef QUOTE_H
#define QUOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"

/* Appends `text` as one word that sh, csh and fish all take for exactly `text`.
 * A leading "~/" stays outside the quotes if `home` says so. */
void quote_word(struct bytes *into, const char *text, bool home);

/* Appends `text` for a person's eyes: control bytes as \n, \xNN. */
void quote_shown(struct bytes *into, const char *text);

void hex_add(struct bytes *into, const void *data, size_t length);

/* A name that nobody guesses. 0, or -1 with errno. */
enum { HEX_RANDOM = 16 };
int hex_random(char into[2 * HEX_RANDOM + 1]);

/* Reads exactly `length` bytes from twice as many digits; -1 if they are not that. */
int hex_read(const char *digits, void *data, size_t length);

/* A string of its own without NUL inside; NULL if the digits are none. */
char *hex_text(const char *digits);

#endif
