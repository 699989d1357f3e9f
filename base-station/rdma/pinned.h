/* How much memory may be pinned for RDMA, and a ring that fits into it. */
#ifndef PINNED_H
#define PINNED_H

#include "records.h"

/* RLIMIT_MEMLOCK, or UINT64_MAX where it does not hold (CAP_IPC_LOCK). */
uint64_t pinned_limit(void);

/* Makes the hello's chunk and credits smaller until both kinds of receives fit into
 * `limit_bytes`. Returns whether something was changed. */
int pinned_fit(struct hello *hello, uint64_t limit_bytes);

#endif
