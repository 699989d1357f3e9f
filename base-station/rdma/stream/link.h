/* The connection to a proven peer: that it lives, what it says that both ends treat
 * alike, and how to part from it. */
#pragma once

#include <stdbool.h>

#include "options.h"
#include "meeting.h"
#include "transport.h"

enum {
    FINISH_MS = 1000,
    /* Bytes a second. Slower is a record that waits for bytes that were lost, and gets
     * a heartbeat's instead: 32 a second, or fewer. */
    RATE_LEAST = 100,
};

struct link {
    struct transport *transport;
    int64_t timeout_ms, idle_ms;
    int64_t heard_ms, beaten_ms, moved_ms; /* of the peer, to the peer, data */
    bool silent; /* the peer is */
    /* Over RDMA the receiver has nothing to take a record with between its proof and its
     * first credit; one that came then would wait 0.7 s for its next try: so a sender
     * says nothing before that. */
    bool sends;
    struct seals *seals; /* NULL: plain; not owned */
    uint64_t said, got;  /* see records.h, heartbeat: what we say, what we have */
    uint64_t heard_bytes;
    struct { int64_t since_ms; uint64_t bytes; } part; /* of a record that has begun */
    bool told; /* the peer said why it stops: it need not be told */
};

void link_open(struct link *link, struct transport *transport,
               const struct options *options);

/* Waits until something may have happened, at most until the next heartbeat. `extra`
 * are descriptors (-1 = none) with their events; their revents are filled in. A signal
 * that ends this process is a trouble. */
int link_wait(struct link *link, struct pollfd *extra, int count,
              struct trouble *trouble);

/* The next event, or 0. Aborts are a trouble; heartbeats are not passed on. */
int link_next(struct link *link, struct transport_event *event, struct trouble *trouble);

/* Sends a heartbeat if it is time; silence of the peer or of the data is a trouble. */
int link_tick(struct link *link, struct trouble *trouble);

/* Queues a record; only an end and a done have an `ending`. 1: later. */
int link_say(struct link *link, int type, uint64_t number, const struct ending *ending,
             struct trouble *trouble);

/* Tells the peer what went wrong, unless it told us, and waits for its leave. */
void link_abort(struct link *link, const struct trouble *why);
