/* How far and how fast, on a terminal. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "trouble.h"

#define STATS_CLEAR "\r\033[K" /* takes the line away */
enum { STATS_EACH_MS = 500 };

/* "1.500 MB". Returns `into`. */
const char *stats_amount(double bytes, char *into, size_t room);

/* A line: of `size` bytes (-1 = not known) so many are done, of which so many were moved
 * in `us`. The next one takes its place. */
void stats_show(uint64_t moved, uint64_t done, int64_t size, int64_t us);
