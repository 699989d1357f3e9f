/* What was moved and how fast: for a person (-v), a program (--json), a terminal. */
#pragma once

#include "meeting.h"
#include "options.h"
#include "ring.h"
#include "transport.h"

#define STATS_CLEAR "\r\033[K" /* takes the line away */
enum { STATS_EACH_MS = 500 };

struct stats {
    const struct options *options;
    bool verbose, terminal; /* false before stats_open */
    int64_t start_us, shown_us, size; /* size -1 = not known */
};

/* So that stats_close has its line of JSON, if it is to give one, however little comes. */
void stats_init(struct stats *stats, const struct options *options);

/* "sending to PEER over tcp, chunks of ...", if it is to be verbose. */
void stats_open(struct stats *stats, int64_t size, const struct transport *transport,
                const struct meeting *meeting);

/* A line on a terminal: of `size` bytes (-1 = not known) so many are done, of which so
 * many were moved in `us`. The next one takes its place. */
void stats_show(uint64_t moved, uint64_t done, int64_t size, int64_t us);

/* The same, at most twice a second. */
void stats_progress(struct stats *stats, uint64_t bytes);

void stats_close(struct stats *stats, const struct transport *transport,
                 const struct worker *worker, const struct trouble *trouble);
