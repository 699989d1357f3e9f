/* Connecting a sender to its receiver: tries addresses in order until one passes the
 * handshake, RDMA before TCP. */
#pragma once

#include "meeting.h"
#include "options.h"
#include "records.h"
#include "transport.h"

/* Start the handshake with the peer. Return -1 with a trouble, for example if --plain is
 * given only once for an address that requires it twice. */
int meet_begin(struct meeting *meeting, const struct options *options,
               const struct key *key, struct transport *transport,
               struct trouble *trouble);

/* Process a received record and answer it. Return 1: continue; 0: no data available; -1
 * with a trouble. */
int meet_next(struct meeting *meeting, struct transport *transport,
              struct trouble *trouble);

/* Connect and complete the handshake. NULL with a trouble. `meeting` holds the agreed
 * parameters. */
struct transport *dial(const struct options *options, const struct key *key,
                       struct meeting *meeting, struct trouble *trouble);
