/* Connection to an authenticated peer: liveness, the records that both ends handle in the same way,
 * and closing. */
#pragma once

#include <stdbool.h>

#include "options.h"
#include "handshake.h"
#include "transport.h"

enum {
    FINISH_MS = 1000,
    /* Bytes a second. A slower record is waiting for the retransmission of lost bytes, and only
     * receives the bytes of heartbeats: 32 a second, or fewer. */
    RATE_LEAST = 100,
};

struct link {
    struct transport *transport;
    int64_t timeout_ms, idle_ms;
    int64_t heard_ms, beaten_ms, moved_ms; /* last received, last sent, last data */
    bool silent; /* the peer has timed out */
    /* Over RDMA the receiver posts no receive buffer between its proof and its first credit. A
     * record sent in that time would wait 0.7 s for its retry, so a sender sends nothing before the
     * first credit. */
    bool sends;
    struct seals *seals; /* NULL: plain; not owned */
    uint64_t said, got;  /* see heartbeat in records.h: records sent, records received */
    uint64_t heard_bytes;
    struct { int64_t since_ms; uint64_t bytes; } part; /* of a record in progress */
    bool told; /* the peer sent the abort: do not send one back */
};

void link_open(struct link *link, struct transport *transport, const struct options *options);

/* Wait for an event, at most until the next heartbeat is due. `extra` are descriptors (-1 = unused)
 * with their events; their revents are filled in. A signal that ends this process is an error. */
int link_wait(struct link *link, struct pollfd *extra, int count, struct error *error);

/* Read the next event; 0 if no event is available. Aborts are an error; heartbeats are not passed
 * on. */
int link_next(struct link *link, struct transport_event *event, struct error *error);

/* Send a heartbeat if one is due. A time-out of the peer or of the data is an error. */
int link_tick(struct link *link, struct error *error);

/* Queue a record. Only end and done records have an `ending`. Return 1: retry later. */
int link_say(struct link *link, int type, uint64_t number, const struct ending *ending,
             struct error *error);

/* Send the reason to the peer, unless the peer sent the abort, and wait for it to close. */
void link_abort(struct link *link, const struct error *why);
