/* Connecting a sender to its receiver: tries addresses in order until one passes the handshake,
 * RDMA before TCP. */
#pragma once

#include "handshake.h"
#include "options.h"
#include "records.h"
#include "transport.h"

/* Start the handshake with the peer. Return -1 with an error, for example if --plain is given only
 * once for an address that requires it twice. */
int handshake_begin(struct handshake *handshake, const struct options *options,
                    const struct key *key, struct transport *transport, struct error *error);

/* Process a received record and answer it. Return 1: continue; 0: no data available; -1 with an
 * error. */
int handshake_next(struct handshake *handshake, struct transport *transport, struct error *error);

/* Connect and complete the handshake. NULL with an error. `handshake` holds the agreed
 * parameters. */
struct transport *connect_peer(const struct options *options, const struct key *key,
                       struct handshake *handshake, struct error *error);
