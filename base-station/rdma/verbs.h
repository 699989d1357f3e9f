/* One RDMA connection, shared by transport_verbs.c (records) and verbs_connect.c (how it
 * comes about). */
#ifndef VERBS_H
#define VERBS_H

#include <rdma/rdma_cma.h>

#include "options.h"
#include "transport.h"

enum {
    CONTROL_RECEIVES = 8, /* outside the credits */
    /* A receiver's before the proof: hello, and proof or abort. Were there more, the
     * first data would fall into what is left of these small buffers. */
    FIRST_RECEIVES = 2,
    VERBS_ACK_TIMEOUT = 16, /* 4.096 us * 2^16 = 0.27 s until it sends again */
    VERBS_RETRIES = 6,      /* 7 is "for ever" on some devices */
};

struct verbs {
    struct transport base;
    bool receives; /* we accepted: data comes to us */
    struct rdma_event_channel *events;
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_comp_channel *completions;
    struct ibv_cq *cq;
    bool has_qp;

    uint8_t control[(CONTROL_RECEIVES + CONTROLS_MOST) * CONTROL_BYTES];
    struct ibv_mr *control_mr;
    struct slot control_in[CONTROL_RECEIVES], control_out[CONTROLS_MOST];
    struct slots control_free;

    struct ring *ring; /* not owned */
    struct ibv_mr *ring_mr;
    uint8_t *spare_memory; /* a receiver's control receives after the proof */
    size_t spare_bytes;
    struct ibv_mr *spare_mr;
    struct slot spare[CONTROL_RECEIVES];

    struct slot *spent; /* received into, to post again at the next poll */
    unsigned in_flight; /* sends without a completion */
    int ready_fd;       /* always readable */
    bool credited;      /* the receiver's first credit came */
    bool armed, drained, disconnected, failed;
};

/* A connection over `id` (taken over, also when it fails) with its queue pair, first
 * receives posted. NULL with a trouble. */
struct verbs *verbs_open(struct rdma_event_channel *events, struct rdma_cm_id *id,
                         bool receives, struct trouble *trouble);

/* Waits for the next event of the connection manager. 0, or -1 with a trouble unless it
 * is the one expected. */
int verbs_expect(struct rdma_event_channel *events, enum rdma_cm_event_type expected,
                 int64_t end_ms, struct trouble *trouble);

#endif
