/* How much memory may be pinned for RDMA, and a ring that fits into it. */
#ifndef PINNED_H
#define PINNED_H

#include "records.h"

/* RLIMIT_MEMLOCK, or UINT64_MAX where it does not hold (CAP_IPC_LOCK). */
uint64_t pinned_limit(void);

/* What a side pins that offers this: its ring, queues and small records; a receiver
 * also receives for the records that are not data. */
uint64_t pinned_need(const struct hello *hello);

/* Makes the hello's chunk and credits smaller until they fit into `limit_bytes`. Returns
 * whether something was changed; -1: not even the least of both fits. */
int pinned_fit(struct hello *hello, uint64_t limit_bytes);

#endif
