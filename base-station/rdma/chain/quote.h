/* Text made safe for a shell, and bytes as hexadecimal words. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"

/*
 * Append `text` as one word that sh, csh and fish all read as exactly `text`. A leading "~/" stays
 * outside the quotes if `home` is set.
 */
void quote_word(struct bytes *into, const char *text, bool home);

/* Append `text` for display: control bytes as \n, \xNN. */
void quote_shown(struct bytes *into, const char *text);

void hex_add(struct bytes *into, const void *data, size_t length);

/*
 * Generate a secret or an unguessable name: `digits` hex digits and a NUL. Return 0, or -1 with
 * errno.
 */
int hex_random(char *into, size_t digits);
