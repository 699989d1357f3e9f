/* Text made safe for a shell, and bytes as hexadecimal words. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"

/* Appends `text` as one word that sh, csh and fish all take for exactly `text`.
 * A leading "~/" stays outside the quotes if `home` says so. */
void quote_word(struct bytes *into, const char *text, bool home);

/* Appends `text` for a person's eyes: control bytes as \n, \xNN. */
void quote_shown(struct bytes *into, const char *text);

void hex_add(struct bytes *into, const void *data, size_t length);

/* A secret, or a name that nobody guesses: so many digits and a NUL. 0, or -1 with
 * errno. */
int hex_random(char *into, size_t digits);
