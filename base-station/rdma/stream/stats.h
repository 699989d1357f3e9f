/* Progress and throughput, on a terminal. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "error.h"

#define STATS_CLEAR "\r\033[K" /* erases the line */
enum { STATS_EACH_MS = 500 };

/* Format as "1.500 MB". Return `into`. */
const char *stats_amount(double bytes, char *into, size_t room);

/* Show a progress line: `done` of `size` bytes (-1 = unknown), of which `moved` bytes
 * were moved in `us`. The next line replaces it. */
void stats_show(uint64_t moved, uint64_t done, int64_t size, int64_t us);
