/* A connection that carries records: TCP (transport_tcp.c) or RDMA (transport_verbs.c).
 * One thread owns it; nothing here ever waits but finish(). */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "records.h"
#include "ring.h"
#include "trouble.h"

enum transport_event_kind {
    EVENT_RECORD, /* a record that is not data; `body` is good until the next poll */
    EVENT_DATA,   /* data, in a slot that was given; the slot is the caller's now */
    EVENT_SENT,   /* a slot that was posted; it is the caller's again */
};

struct transport_event {
    enum transport_event_kind kind;
    struct record record;
    const uint8_t *body;
    struct slot *slot;
};

enum { TRANSPORT_FDS = 3, CONTROLS_MOST = 4 };

struct transport;

struct transport_kind {
    const char *name; /* as --transport takes it */
    int number;       /* as the hello has it */
    bool ordered; /* control records go after the data that was posted before them */

    /* Makes the slots' memory known to the device. */
    int (*ring)(struct transport *, struct ring *, struct trouble *);
    /* Queues a whole record that is not data; copied. At most CONTROLS_MOST wait; a
     * heartbeat or a credit that would be one more is left for later: returns 1. */
    int (*control)(struct transport *, const uint8_t *record, struct trouble *);
    /* Sends slot->bytes, header and body. */
    int (*post)(struct transport *, struct slot *, struct trouble *);
    /* Lets a slot be received into. */
    int (*give)(struct transport *, struct slot *, struct trouble *);
    /* 1: an event; 0: none now; -1: trouble, or the peer left. */
    int (*poll)(struct transport *, struct transport_event *, struct trouble *);
    /* Fills in what to poll(2) for before the next poll(). Returns how many. */
    int (*fds)(struct transport *, struct pollfd *);
    bool (*sending)(const struct transport *);
    /* Sends what is queued, says that no more comes, waits until the peer left: while
     * something moves, at most so long after it moved. A signal ends the wait. */
    void (*finish)(struct transport *, int limit_ms);
    void (*close)(struct transport *);
};

struct transport {
    const struct transport_kind *kind;
    char peer[80];
    char device[64];
    bool loopback;      /* both ends are on this machine, and share its caches */
    bool foreign;       /* the peer is not in a private network */
    uint32_t data_most; /* the greatest body of a data record; 0 until the proof */
    bool peer_left;
    uint64_t heard_bytes; /* of the peer, as far as they come in parts of records */
    bool in_part;         /* a record has begun to come, and has not ended */
    /* poll(2) had nothing to say about its descriptors: poll() need not ask them. */
    bool quiet;
};

/* Over TCP: takes a connected socket over, also when it fails. NULL with a trouble. */
struct transport *tcp_open(int fd, struct trouble *trouble);

/* Connects within `limit_ms`. NULL with a trouble. */
struct transport *tcp_dial(const struct sockaddr *address, socklen_t length,
                           const struct sockaddr *from, socklen_t from_length,
                           int64_t limit_ms, struct trouble *trouble);

/* How long to wait for what is on its way: on a slow link that takes long. */
enum { FINISH_MOST_MS = 10000 };

struct patience {
    int64_t end_ms, most_ms, limit_ms;
    uint64_t left;
};

static inline struct patience patience_begin(int64_t limit_ms, uint64_t left)
{
    int64_t now = now_ms();
    return (struct patience){now + limit_ms, now + FINISH_MOST_MS, limit_ms, left};
}

/* `left` is what is still on its way. May it be waited for until `end_ms`? */
static inline bool patience_left(struct patience *patience, uint64_t left)
{
    int64_t now = now_ms();
    if (left < patience->left) {
        patience->left = left;
        patience->end_ms = now + patience->limit_ms;
        if (patience->end_ms > patience->most_ms)
            patience->end_ms = patience->most_ms;
    }
    return now < patience->end_ms;
}

static inline void transport_close(struct transport *transport)
{
    if (transport)
        transport->kind->close(transport);
}
