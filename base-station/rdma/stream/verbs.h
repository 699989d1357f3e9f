/* One RDMA connection: how it comes about (verbs_connect.c), and its records
 * (transport_verbs.c). */
#pragma once

#include <rdma/rdma_cma.h>

#include "transport.h"

enum {
    CONTROL_RECEIVES = 8, /* outside the credits */
    /* A receiver's before the proof: hello, and proof or abort. Were there more, the
     * first data would fall into what is left of these small buffers. */
    FIRST_RECEIVES = 2,
    VERBS_RETRIES = 6, /* 7 is "for ever" on some devices */
    ACK_LEAST = 16,    /* 4.096 us * 2^16 = 0.27 s until it sends again */
    ACK_MOST = 21,     /* 8.6 s; a minute in all */
    ACK_MARGIN_MS = 1000,
};

/* A connection over `id` (taken over, also when it fails) with its queue pair, first
 * receives posted; the queues hold `credits` records of data, which come to us if it
 * `receives`. NULL with a trouble. */
struct transport *verbs_open(struct rdma_cm_id *id, bool receives, uint32_t credits,
                             struct trouble *trouble);
