/* Records over RDMA: see transport.h. Each record is one message (a send), received into buffers
 * that the other end cannot write to directly: they allow local writes only.
 *
 * Completions: the queue is armed first, then drained until it is empty, so that a completion that
 * arrives in between does not wait for another event. One event may stand for many completions. */
#include "transport.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bytes.h"

enum { CONTROL_MEMORY = CONTROLS_MEMORY + CONTROL_RECEIVES * CONTROL_BYTES };

struct verbs {
    struct transport base;
    bool receives; /* we accepted: we receive the data */
    struct rdma_cm_id *id;
    struct ibv_comp_channel *completions;
    struct ibv_cq *cq;
    bool has_qp;

    uint8_t *control; /* CONTROL_MEMORY bytes, in separate pages */
    struct ibv_mr *control_mr;
    struct slot control_in[CONTROL_RECEIVES];

    struct ring *ring; /* not owned */
    struct ibv_mr *ring_mr;

    uint8_t heard[CONTROL_BYTES]; /* the last record other than data */
    unsigned in_flight; /* sends without a completion */
    bool armed, disconnected, failed;
};

/* Return true for a small receive buffer, used for records other than data. */
static bool small(const struct verbs *verbs, const struct slot *slot)
{
    return slot >= verbs->control_in && slot < verbs->control_in + CONTROL_RECEIVES;
}

static int post_receive(struct verbs *verbs, struct slot *slot, struct error *error)
{
    bool control = small(verbs, slot);
    size_t room = control ? CONTROL_BYTES : RECORD_BYTES + verbs->ring->chunk + SEAL_BYTES;
    if (rdma_post_recv(verbs->id, slot, slot->bytes, room,
                       control ? verbs->control_mr : verbs->ring_mr) < 0)
        return fault(error, "ibv_post_recv: %m");
    return 0;
}

static int verbs_post(struct transport *base, struct slot *slot, struct error *error)
{
    struct verbs *verbs = (struct verbs *)base;
    bool control = transport_controls(base, slot);
    if (verbs->failed)
        return 0;
    if (rdma_post_send(verbs->id, slot, slot->bytes, RECORD_BYTES + (size_t)slot->length,
                       control ? verbs->control_mr : verbs->ring_mr, IBV_SEND_SIGNALED) < 0)
        return fault(error, "ibv_post_send: %m");
    verbs->in_flight++;
    return 0;
}

/* Pin whole pages that this end may send from and receive into, without remote access. Huge pages
 * are pinned faster. A command's process does not need them: pinned pages would be copied for the
 * child or, before Linux 5.12, taken from us. */
static struct ibv_mr *pin(struct verbs *verbs, void *memory, size_t bytes, struct error *error)
{
    madvise(memory, bytes, MADV_HUGEPAGE);
    madvise(memory, bytes, MADV_DONTFORK);
    struct ibv_mr *mr = rdma_reg_msgs(verbs->id, memory, bytes);
    if (!mr)
        fault(error, "cannot pin %zu KiB for RDMA: %m: raise `ulimit -l`, or give fewer "
              "--credits or a smaller --chunk", bytes >> 10);
    return mr;
}

/* Register the ring. The spare slots of a receiver serve as control receives and must have space
 * for data too: messages fill the receives in order, whatever their type. */
static int verbs_ring(struct transport *base, struct ring *ring, struct error *error)
{
    struct verbs *verbs = (struct verbs *)base;
    verbs->ring = ring;
    verbs->ring_mr = pin(verbs, ring->memory, ring->bytes, error);
    if (!verbs->ring_mr)
        return -1;
    for (uint32_t i = ring->count; i < ring->count + base->spares; i++)
        if (post_receive(verbs, &ring->slot[i], error) < 0)
            return -1;
    return 0;
}

static int verbs_give(struct transport *base, struct slot *slot, struct error *error)
{
    return post_receive((struct verbs *)base, slot, error);
}

static int take_received(struct verbs *verbs, struct slot *slot, uint32_t length,
                         struct transport_event *event, struct error *error)
{
    struct record record;
    const char *why = length < RECORD_BYTES
                          ? "a message that is shorter than a record"
                          : record_get(&record, slot->bytes, verbs->base.data_most);
    if (!why && length != RECORD_BYTES + record.length)
        why = "a message of another length than it says";
    if (why)
        return transport_refuse(&verbs->base, why, error);
    bool data = record.type == RECORD_DATA;
    slot->length = record.length;
    *event = (struct transport_event){
        .kind = data ? EVENT_DATA : EVENT_RECORD,
        .record = record,
        .body = (data ? slot->bytes : verbs->heard) + RECORD_BYTES,
        .slot = data ? slot : NULL,
    };
    if (data)
        return 1;
    memcpy(verbs->heard, slot->bytes, length);
    bool once = verbs->receives && small(verbs, slot);
    if (once || verbs->failed)
        return 1;
    return post_receive(verbs, slot, error) < 0 ? -1 : 1;
}

/* Return 1: an event; 0: no event; -1 with an error. */
static int take_completion(struct verbs *verbs, const struct ibv_wc *done,
                           struct transport_event *event, struct error *error)
{
    struct slot *slot = (void *)(uintptr_t)done->wr_id;
    if (done->status == IBV_WC_WR_FLUSH_ERR) {
        verbs->failed = true; /* the reason is in another completion or event */
        return 0;
    }
    if (done->status != IBV_WC_SUCCESS) {
        const char *what = "is cut off";
        if (done->status == IBV_WC_RETRY_EXC_ERR)
            what = "does not answer any more: is the network cut?";
        else if (done->status == IBV_WC_REM_OP_ERR)
            what = "left without a word"; /* killed while data arrived */
        verbs->failed = true;
        verbs->base.peer_left = true; /* no more sending is possible */
        return fault(error, "%s %s (%s)", verbs->base.peer, what, ibv_wc_status_str(done->status));
    }
    if (done->opcode == IBV_WC_RECV)
        return take_received(verbs, slot, done->byte_len, event, error);
    verbs->in_flight--;
    if (transport_controls(&verbs->base, slot)) {
        slots_put(&verbs->base.control_free, slot);
        return 0;
    }
    *event = (struct transport_event){.kind = EVENT_SENT, .slot = slot};
    return 1;
}

static void take_cm_events(struct verbs *verbs)
{
    struct rdma_cm_event *event;
    while (rdma_get_cm_event(verbs->id->channel, &event) == 0) {
        verbs->disconnected |= event->event == RDMA_CM_EVENT_DISCONNECTED ||
                               event->event == RDMA_CM_EVENT_DEVICE_REMOVAL ||
                               event->event == RDMA_CM_EVENT_REJECTED ||
                               event->event == RDMA_CM_EVENT_UNREACHABLE ||
                               event->event == RDMA_CM_EVENT_CONNECT_ERROR;
        rdma_ack_cm_event(event);
    }
}

/* Read the completion event. At most one is pending: the queue is armed again only afterwards. */
static void take_completion_event(struct verbs *verbs)
{
    struct ibv_cq *cq;
    void *context;
    if (verbs->armed && ibv_get_cq_event(verbs->completions, &cq, &context) == 0) {
        ibv_ack_cq_events(cq, 1);
        verbs->armed = false;
    }
}

/* Arm the empty queue: later completions wake the waiting thread. Return -1 with an error. */
static int rest(struct verbs *verbs, struct error *error)
{
    take_completion_event(verbs);
    take_cm_events(verbs);
    int code = verbs->armed ? 0 : ibv_req_notify_cq(verbs->cq, 0);
    if (code)
        return fault(error, "ibv_req_notify_cq: %s", strerror(code));
    verbs->armed = true;
    return 0;
}

static int verbs_poll(struct transport *base, struct transport_event *event, struct error *error)
{
    struct verbs *verbs = (struct verbs *)base;
    struct ibv_wc done;
    int got;
    for (bool rested = base->quiet && verbs->armed;;) {
        while ((got = ibv_poll_cq(verbs->cq, 1, &done)) > 0) {
            int told = take_completion(verbs, &done, event, error);
            if (told)
                return told;
        }
        if (got < 0)
            return fault(error, "ibv_poll_cq: %m");
        if (rested)
            break; /* all records before the disconnect event have been reported */
        if (rest(verbs, error) < 0)
            return -1;
        rested = true;
    }
    base->quiet = true;
    if (!verbs->disconnected)
        return 0;
    base->peer_left = true;
    return fault(error, "%s left without a word", base->peer);
}

static int verbs_fds(struct transport *base, struct pollfd *polled)
{
    struct verbs *verbs = (struct verbs *)base;
    base->quiet = false;
    polled[0] = (struct pollfd){verbs->id->channel->fd, POLLIN, 0};
    polled[1] = (struct pollfd){verbs->completions->fd, POLLIN, 0};
    return 2;
}

/* Count the sends in flight. A completed send is in the other end's memory, so no record is
 * lost. */
static uint64_t verbs_left(struct transport *base)
{
    struct verbs *verbs = (struct verbs *)base;
    struct error ignored = {0};
    struct transport_event event;
    int got = 1;
    while (got > 0 && verbs->in_flight && !verbs->failed)
        got = verbs_poll(base, &event, &ignored);
    return got < 0 || verbs->failed ? 0 : verbs->in_flight;
}

static void verbs_leave(struct transport *base)
{
    rdma_disconnect(((struct verbs *)base)->id);
}

static void verbs_close(struct transport *base)
{
    struct verbs *verbs = (struct verbs *)base;
    if (verbs->has_qp)
        rdma_destroy_qp(verbs->id); /* the device must release the memory first */
    if (verbs->ring_mr)
        ibv_dereg_mr(verbs->ring_mr);
    if (verbs->control_mr)
        ibv_dereg_mr(verbs->control_mr);
    if (verbs->control)
        munmap(verbs->control, CONTROL_MEMORY);
    if (verbs->cq)
        ibv_destroy_cq(verbs->cq);
    if (verbs->completions)
        ibv_destroy_comp_channel(verbs->completions);
    struct rdma_event_channel *events = verbs->id->channel;
    rdma_destroy_id(verbs->id);
    rdma_destroy_event_channel(events);
    free(verbs);
}

static const struct transport_kind verbs_kind = {
    .name = "rdma",
    .number = TRANSPORT_RDMA,
    .ordered = true,
    .ring = verbs_ring,
    .post = verbs_post,
    .give = verbs_give,
    .poll = verbs_poll,
    .fds = verbs_fds,
    .left = verbs_left,
    .leave = verbs_leave,
    .close = verbs_close,
};

/* Create the queues. Some providers allow no requests for a capacity of zero. Some pin the queues,
 * so they are as short as possible. */
static int open_queues(struct verbs *verbs, uint32_t credits, struct error *error)
{
    uint32_t sends = CONTROLS_MOST + (verbs->receives ? 0 : credits);
    uint32_t receives = CONTROL_RECEIVES + (verbs->receives ? FIRST_RECEIVES + credits : 0);
    verbs->completions = ibv_create_comp_channel(verbs->id->verbs);
    if (!verbs->completions)
        return fault(error, "cannot use the RDMA device: %m");
    verbs->cq = ibv_create_cq(verbs->id->verbs, (int)(sends + receives), NULL,
                              verbs->completions, 0);
    struct ibv_qp_init_attr wanted = {
        .send_cq = verbs->cq,
        .recv_cq = verbs->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = sends,
                .max_recv_wr = receives,
                .max_send_sge = 1,
                .max_recv_sge = 1},
    };
    verbs->has_qp = verbs->cq && rdma_create_qp(verbs->id, NULL, &wanted) == 0;
    if (verbs->has_qp)
        return 0;
    return fault(error,
                 "the RDMA device has no queues for %u sends and %u receives: %m: give fewer "
                 "--credits, or raise `ulimit -l`", (unsigned)sends, (unsigned)receives);
}

static int post_first(struct verbs *verbs, struct error *error)
{
    int first = verbs->receives ? FIRST_RECEIVES : CONTROL_RECEIVES;
    void *memory = mmap(NULL, CONTROL_MEMORY, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return fault(error, "no memory: %m");
    verbs->control = memory;
    transport_open(&verbs->base, &verbs_kind, verbs->control);
    verbs->control_mr = pin(verbs, memory, CONTROL_MEMORY, error);
    if (!verbs->control_mr)
        return -1;
    for (int i = 0; i < first; i++) {
        verbs->control_in[i].bytes = verbs->control + CONTROLS_MEMORY + (size_t)i * CONTROL_BYTES;
        if (post_receive(verbs, &verbs->control_in[i], error) < 0)
            return -1;
    }
    return 0;
}

struct transport *verbs_open(struct rdma_cm_id *id, bool receives, uint32_t credits,
                             struct error *error)
{
    struct verbs *verbs = allocated(calloc(1, sizeof *verbs));
    verbs->base.kind = &verbs_kind;
    verbs->base.spares = receives ? CONTROL_RECEIVES : 0;
    verbs->id = id;
    verbs->receives = receives;
    if (open_queues(verbs, credits, error) == 0 && post_first(verbs, error) == 0 &&
        fcntl(id->channel->fd, F_SETFL, O_NONBLOCK) == 0 &&
        fcntl(verbs->completions->fd, F_SETFL, O_NONBLOCK) == 0)
        return &verbs->base;
    fault(error, "cannot use the RDMA device: %m");
    transport_close(&verbs->base);
    return NULL;
}
