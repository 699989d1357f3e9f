/* Text made safe for a shell or for display. */
#pragma once

#include "bytes.h"

/*
 * Append `text` as one word that sh, csh and fish all read as exactly `text`. A leading "~/" stays
 * outside the quotes if `home` is set.
 */
void quote_word(struct bytes *into, const char *text, bool home);

/* Append `text` for display: control bytes as \n, \xNN. */
void quote_shown(struct bytes *into, const char *text);
