/* Connecting a sender to its receiver (connect.c) and accepting one (pending_peers.c). */
#pragma once

#include <sys/socket.h>

#include "handshake.h"
#include "options.h"
#include "transport.h"

/* Start the handshake with the peer. Return -1 with an error, for example if --plain is given only
 * once for an address that requires it twice. */
int handshake_begin(struct handshake *handshake, const struct options *options,
                    const struct key *key, struct transport *transport, struct error *error);

/* Process a received record and answer it. Return 1: continue; 0: no data available; -1 with an
 * error. */
int handshake_next(struct handshake *handshake, struct transport *transport, struct error *error);

/* Try addresses in order, RDMA before TCP, until one passes the handshake. NULL with an error.
 * `handshake` holds the agreed parameters. */
struct transport *connect_peer(const struct options *options, const struct key *key,
                       struct handshake *handshake, struct error *error);

/* Connections whose peer has not proved that it has the key: at most eight at once, each for half
 * of --timeout, so that silent strangers leave in time for a sender with the default
 * --connect-timeout. A failed handshake never ends the receiver. */
enum { PENDING_MOST = 8, PENDING_LEAST_MS = 5000 };

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
