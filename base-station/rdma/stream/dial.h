/* How a sender gets to its receiver: addresses in order until one proves itself, RDMA
 * before TCP. */
#pragma once

#include "meeting.h"
#include "options.h"
#include "records.h"
#include "transport.h"

/* Begins to meet whoever is at the other end. -1 with a trouble, as one that --plain is
 * for somewhere where it has to be asked for twice. */
int meet_begin(struct meeting *meeting, const struct options *options,
               const struct key *key, struct transport *transport,
               struct trouble *trouble);

/* Takes what was said, and answers. 1: goes on; 0: nothing is there; -1 with a trouble. */
int meet_next(struct meeting *meeting, struct transport *transport,
              struct trouble *trouble);

/* Connects and proves. NULL with a trouble; `meeting` is what both agreed on. */
struct transport *dial(const struct options *options, const struct key *key,
                       struct meeting *meeting, struct trouble *trouble);
