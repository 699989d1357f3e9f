/* One RDMA connection: set-up (verbs_connect.c) and records (transport_verbs.c). */
#pragma once

#include <rdma/rdma_cma.h>

#include "transport.h"

enum {
    CONTROL_RECEIVES = 8, /* beyond the credits */
    /* A receiver's buffers before the proof: hello, and proof or abort. With more buffers, the
     * first data would arrive in the remaining small buffers. */
    FIRST_RECEIVES = 2,
    VERBS_RETRIES = 6, /* 7 means "for ever" on some devices */
    ACK_LEAST = 16,    /* 4.096 us * 2^16 = 0.27 s before a retry */
    ACK_MOST = 21,     /* 8.6 s; a minute in all */
    ACK_MARGIN_MS = 1000,
};

/* Open a connection over `id`, and own `id` even on failure. The queue pair has its first receives
 * posted. The queues hold `credits` data records, which we receive if `receives` is set. NULL with
 * an error. */
struct transport *verbs_open(struct rdma_cm_id *id, bool receives, uint32_t credits,
                             struct error *error);
