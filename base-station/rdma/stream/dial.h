/* How a sender gets to its receiver: addresses in order until one proves itself, RDMA
 * before TCP. */
#ifndef DIAL_H
#define DIAL_H

#include "meeting.h"
#include "options.h"
#include "records.h"
#include "transport.h"

/* What this side offers; over RDMA no more than may be pinned. Returns whether that made
 * it less; -1 with a trouble: not even the least may be pinned. */
int hello_of_options(struct hello *mine, const struct options *options, int role,
                     int transport, struct trouble *trouble);

/* How the records are to be protected, on this connection. -1 with a trouble: --plain, to
 * where that has to be asked for twice. */
int hello_protect(struct hello *mine, const struct options *options,
                  const struct transport *transport, struct trouble *trouble);

/* Says how much less. */
void hello_say_less(const struct hello *mine);

/* Connects and proves. NULL with a trouble; `meeting` is what both agreed on. */
struct transport *dial(const struct options *options, const struct key *key,
                       struct meeting *meeting, struct trouble *trouble);

/* How much memory may be pinned for RDMA: RLIMIT_MEMLOCK, or UINT64_MAX where it does not
 * hold (CAP_IPC_LOCK). */
uint64_t pinned_limit(void);

/* What a side pins that offers this: its ring, queues and small records; a receiver
 * also receives for the records that are not data. */
uint64_t pinned_need(const struct hello *hello);

/* Makes the hello's chunk and credits smaller until they fit into `limit_bytes`. Returns
 * whether something was changed; -1: not even the least of both fits. */
int pinned_fit(struct hello *hello, uint64_t limit_bytes);

#endif
