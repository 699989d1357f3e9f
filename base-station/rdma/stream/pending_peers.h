/* Connections whose peer has not proved that it has the key: at most eight at once, each for five
 * seconds. A failed handshake never ends the receiver. */
#pragma once

#include <sys/socket.h>

#include "handshake.h"
#include "options.h"
#include "transport.h"

enum { PENDING_MOST = 8, PENDING_LIMIT_MS = 5000 };

struct pending_peer {
    struct transport *transport; /* NULL: unused */
    struct handshake handshake;
    int64_t until_ms;
    bool leaving; /* abort sent; waiting for the peer to close */
};

struct pending_peers {
    const struct options *options; /* not owned */
    const struct key *key;
    int listen_fd;
    struct rdma_cm_id *rdma_id; /* also listening */
    struct sockaddr_storage bound;
    struct pending_peer peers[PENDING_MOST];
};

/* Listen. Return 0, or -1 with an error. Call pending_close in either case. */
int pending_open(struct pending_peers *pending, const struct options *options,
                 const struct key *key, struct error *error);

/* Wait for an authenticated sender. `out_fd` is watched: the wait ends if the output's reader
 * closes. NULL with an error. */
struct transport *pending_accept(struct pending_peers *pending, int out_fd,
                                 struct handshake *handshake, struct error *error);

void pending_close(struct pending_peers *pending);
