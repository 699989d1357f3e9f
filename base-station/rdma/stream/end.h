/* One end of a stream: what rdsend and rdrecv have in common. */
#pragma once

#include "child.h"
#include "key.h"
#include "link.h"
#include "ring.h"
#include "stats.h"

enum { SETTLE_MS = 300 };

struct end {
    const struct options *options; /* not owned */
    struct trouble trouble;
    struct key key;
    struct meeting meeting;
    struct transport *transport; /* NULL before a peer is proven */
    struct link link;
    struct ring ring;
    struct seals seals;
    struct child child;
    struct worker worker; /* the source's or the sink's */
    struct stats stats;
};

/* Reads the key; whatever comes of it, to close. */
int end_init(struct end *end, const struct options *options);

/* All that the stream needs, once the peer is proven: its buffers, its command. `size` is
 * that of what is sent, -1 = not known. Each is 0, or -1 with a trouble. */
int end_open(struct end *end, int64_t size);

/* Waits for the peer, the worker, the command, or for `extra`; see link_wait. */
int end_wait(struct end *end, struct pollfd *extra);

/* Nobody waits for the worker any more: gives it a moment to see that. */
void end_settle(struct end *end);

/* Says what went wrong, and how fast it was. Returns the exit status. What a worker that
 * does not end may use stays. */
int end_close(struct end *end);

/* rdsend and rdrecv: the exit status; what went wrong was said. */
int send_stream(const struct options *options);
int receive_stream(const struct options *options);
