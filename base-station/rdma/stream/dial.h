/* How a sender gets to its receiver: addresses in order until one proves itself, RDMA
 * before TCP. */
#pragma once

#include "meeting.h"
#include "options.h"
#include "records.h"
#include "transport.h"

/* What this side offers; over RDMA no more than may be pinned. Returns whether that made
 * it less; -1 with a trouble: not even the least may be pinned. */
int hello_of_options(struct hello *mine, const struct options *options, int transport,
                     struct trouble *trouble);

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

/* What a side pins that offers this: its ring, queues and small records; a receiver
 * also receives for the records that are not data. */
uint64_t pinned_need(const struct hello *hello);

/* Makes the hello's chunk and credits smaller until they fit into `limit_bytes`. Returns
 * whether something was changed; -1: not even the least of both fits. */
int pinned_fit(struct hello *hello, uint64_t limit_bytes);
