/* Unauthenticated connections: at most eight at once, each for five seconds, until one of
 * them completes the handshake. A failed handshake never ends the receiver. */
#pragma once

#include <sys/socket.h>

#include "meeting.h"
#include "options.h"
#include "transport.h"

enum { LOBBY_SEATS = 8, LOBBY_LIMIT_MS = 5000 };

struct guest {
    struct transport *transport; /* NULL = the seat is free */
    struct meeting meeting;
    int64_t until_ms;
    bool leaving; /* abort sent; waiting for the peer to close */
};

struct lobby {
    const struct options *options; /* not owned */
    const struct key *key;
    int listen_fd;
    struct rdma_cm_id *rdma_id; /* also listening */
    struct sockaddr_storage bound;
    struct guest guests[LOBBY_SEATS];
};

/* Listen. Return 0, or -1 with a trouble. Call lobby_close in either case. */
int lobby_open(struct lobby *lobby, const struct options *options, const struct key *key,
               struct trouble *trouble);

/* Wait for an authenticated sender. `out_fd` is watched: the wait ends if the output's
 * reader closes. NULL with a trouble. */
struct transport *lobby_meet(struct lobby *lobby, int out_fd, struct meeting *meeting,
                             struct trouble *trouble);

void lobby_close(struct lobby *lobby);
