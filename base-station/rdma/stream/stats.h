/* What was moved and how fast: for a person (-v), a program (--json), a terminal. */
#ifndef STATS_H
#define STATS_H

#include "meeting.h"
#include "options.h"
#include "transport.h"

#define STATS_CLEAR "\r\033[K" /* takes the line away */
enum { STATS_EACH_MS = 500 };

struct stats {
    bool verbose, json, terminal;
    int64_t start_us, shown_us, size; /* size -1 = not known */
};

/* So that stats_close has its line of JSON, if it is to give one, however little comes. */
void stats_init(struct stats *stats, const struct options *options);

void stats_open(struct stats *stats, const struct options *options, int64_t size);

/* A line on a terminal: of `size` bytes (-1 = not known) so many are done, of which so
 * many were moved in `us`. The next one takes its place. */
void stats_show(uint64_t moved, uint64_t done, int64_t size, int64_t us);

/* The same, at most twice a second. */
void stats_progress(struct stats *stats, uint64_t bytes);

struct waits {
    int64_t read_us, network_us, write_us;
};

/* "sending to PEER over tcp, chunks of ...", if it is to be verbose. */
void stats_say(const struct stats *stats, const char *what,
               const struct transport *transport, const struct meeting *meeting);

void stats_close(struct stats *stats, const struct transport *transport, uint64_t bytes,
                 const struct waits *waits, const struct trouble *trouble);

#endif
