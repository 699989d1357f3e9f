/*
 * Minimal fake RDMA device that replaces libibverbs and librdmacm in the tests of the verbs
 * transport. It enforces their rules. A queue accepts no more than its capacity. A posted request
 * occupies its queue until its completion is polled. A completion wakes only an armed queue, and
 * only once. Objects must not be destroyed while in use.
 */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>

struct fake {
    /* Capabilities; 0 = sufficient. */
    uint32_t wr_most;
    int cqe_most;
    /* Hook called at each call of the program, to inject completions. */
    void (*moment)(void);
    enum rdma_cm_event_type answer; /* to rdma_connect; CONNECT_REQUEST = no answer */

    /* Record of the calls made. */
    const char *broken; /* the first violated rule */
    int access, open;   /* access flags of registered memory; objects still open */
    bool disconnected;
    struct rdma_conn_param wanted;
    uint8_t ack_timeout;
    uint32_t waiting_sends, waiting_receives; /* posted, not completed */
    uint32_t queued;                          /* completions not polled yet */
};

extern struct fake fake;

/* Reset the device. */
void fake_reset(void);

/* Create an id with a device and an event channel, as a connection has them. */
struct rdma_cm_id *fake_id(void);

/* Complete the oldest send. Return false if there is no pending send. */
bool fake_sent(enum ibv_wc_status status);

/* Deliver a message into the oldest receive. Return false if no receive is posted. */
bool fake_came(const void *message, uint32_t length);

/* Flush all posted requests, as a failing queue pair does. */
void fake_flush(void);

void fake_event(enum rdma_cm_event_type kind);

#endif
