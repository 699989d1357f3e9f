/* One RDMA connection, shared by transport_verbs.c (records) and verbs_connect.c (how it
 * comes about). */
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
    CONTROL_MEMORY = CONTROLS_MEMORY + CONTROL_RECEIVES * CONTROL_BYTES,
};

struct verbs {
    struct transport base;
    bool receives; /* we accepted: data comes to us */
    struct rdma_cm_id *id;
    struct ibv_comp_channel *completions;
    struct ibv_cq *cq;
    bool has_qp;

    uint8_t *control; /* CONTROL_MEMORY, in pages of its own */
    struct ibv_mr *control_mr;
    struct slot control_in[CONTROL_RECEIVES];

    struct ring *ring; /* not owned */
    struct ibv_mr *ring_mr;

    struct slot *spent; /* received into, to post again at the next poll */
    unsigned in_flight; /* sends without a completion */
    bool armed, disconnected, failed;
};

/* A connection over `id` (taken over, also when it fails) with its queue pair, first
 * receives posted; the queues hold `credits` records of data. NULL with a trouble. */
struct verbs *verbs_open(struct rdma_cm_id *id, bool receives, uint32_t credits,
                         struct trouble *trouble);

extern const struct transport_kind verbs_kind;

/* 0, or -1 with a trouble. */
int verbs_post_receive(struct verbs *verbs, struct slot *slot, struct trouble *trouble);

/* Whole pages that this end may send from and receive into, and the other may not touch.
 * A command's process does not get them. */
struct ibv_mr *verbs_pin(struct verbs *verbs, void *memory, size_t bytes,
                         struct trouble *trouble);
