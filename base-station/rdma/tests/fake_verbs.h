/* An RDMA device of a few lines, in the place of libibverbs and librdmacm, for the verbs
 * transport's own tests. It keeps their rules: a queue takes no more than it was made
 * for, what was posted counts until its completion was polled, a completion wakes only a
 * queue that is armed, and once; nothing may be undone that is still in use. */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>

struct fake {
    /* What it offers; 0 = enough. */
    uint32_t wr_most;
    int cqe_most;
    /* Called whenever the program asks it something: what came just then? */
    void (*moment)(void);
    enum rdma_cm_event_type answer; /* to rdma_connect; CONNECT_REQUEST = none */

    /* What was done to it. */
    const char *broken; /* the first rule that was */
    int access, open;   /* how memory was registered; objects that are still there */
    bool disconnected;
    struct rdma_conn_param wanted;
    uint8_t ack_timeout;
    uint32_t waiting_sends, waiting_receives; /* posted, and not completed */
    uint32_t queued;                          /* completions that nobody has polled */
};

extern struct fake fake;

/* As new. */
void fake_reset(void);

/* An id with a device and a channel of events, as a connection has them. */
struct rdma_cm_id *fake_id(void);

/* The oldest send has ended; false: there is none. */
bool fake_sent(enum ibv_wc_status status);

/* A message came, in the oldest receive; false: there is none. */
bool fake_came(const void *message, uint32_t length);

/* All that is posted is given up, as when a queue pair fails. */
void fake_flush(void);

void fake_event(enum rdma_cm_event_type kind);

#endif
