/* Progress of a copy, printed by its source: bytes, rate, and once the total is known the share. */
#pragma once

#include "tree_sides.h"

struct tree_progress {
    const struct rdcp_options *options; /* NULL before the copy starts */
    int64_t start_us, shown_us;
};

void tree_progress_open(struct tree_progress *progress, const struct rdcp_options *options);

/* True if this copy shows its progress: as a line on a terminal, or as lines of JSON. */
bool tree_progress_wanted(const struct rdcp_options *options);

/*
 * Show the bytes that are done, of `total` (-1: unknown), and the bytes that were sent. The
 * difference consists of holes and of bytes that the sink already had. Unless it is the `last`,
 * a line is skipped if the previous one is younger than half a second.
 */
void tree_progress_show(struct tree_progress *progress, uint64_t done, uint64_t moved,
                        int64_t total, bool last);

/* Clear the progress line before another line is printed. */
void tree_progress_clear(const struct tree_progress *progress);
