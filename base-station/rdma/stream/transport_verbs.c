/* Records over RDMA: see transport.h. Each record is one message (a send), received into
 * buffers that the other end cannot write to at will: local write is all they allow.
 *
 * Completions: the queue is armed first, then drained until it is empty, so that no
 * completion that came in between waits for an event; one event may stand for many.
 */
#include "verbs.h"

#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A small receive, for what is not data. */
static bool small(const struct verbs *verbs, const struct slot *slot)
{
    return slot >= verbs->control_in && slot < verbs->control_in + CONTROL_RECEIVES;
}

int verbs_post_receive(struct verbs *verbs, struct slot *slot, struct trouble *trouble)
{
    bool control = small(verbs, slot);
    size_t room = control ? CONTROL_BYTES : RECORD_BYTES + verbs->ring->chunk + SEAL_BYTES;
    if (rdma_post_recv(verbs->id, slot, slot->bytes, room,
                       control ? verbs->control_mr : verbs->ring_mr) < 0)
        return fault(trouble, "ibv_post_recv: %m");
    return 0;
}

static int verbs_post(struct transport *base, struct slot *slot, struct trouble *trouble)
{
    struct verbs *verbs = (struct verbs *)base;
    bool control = transport_controls(base, slot);
    if (verbs->failed)
        return 0;
    if (rdma_post_send(verbs->id, slot, slot->bytes, RECORD_BYTES + (size_t)slot->length,
                       control ? verbs->control_mr : verbs->ring_mr,
                       IBV_SEND_SIGNALED) < 0)
        return fault(trouble, "ibv_post_send: %m");
    verbs->in_flight++;
    return 0;
}

/* Large pages are pinned sooner; a command's process has no need of any, and what is
 * pinned would be copied for it, or, before Linux 5.12, taken from us. */
struct ibv_mr *verbs_pin(struct verbs *verbs, void *memory, size_t bytes,
                         struct trouble *trouble)
{
    madvise(memory, bytes, MADV_HUGEPAGE);
    madvise(memory, bytes, MADV_DONTFORK);
    struct ibv_mr *mr = rdma_reg_msgs(verbs->id, memory, bytes);
    if (!mr)
        fault(trouble,
              "cannot pin %zu KiB for RDMA: %m: raise `ulimit -l`, or give fewer "
              "--credits or a smaller --chunk", bytes >> 10);
    return mr;
}

/* A receiver's control receives, which the ring's spare slots are, must hold data too:
 * messages fill the receives in turn, whatever they are. */
static int verbs_ring(struct transport *base, struct ring *ring, struct trouble *trouble)
{
    struct verbs *verbs = (struct verbs *)base;
    verbs->ring = ring;
    verbs->ring_mr = verbs_pin(verbs, ring->memory, ring->bytes, trouble);
    if (!verbs->ring_mr)
        return -1;
    for (uint32_t i = ring->count; i < ring->count + base->spares; i++)
        if (verbs_post_receive(verbs, &ring->slot[i], trouble) < 0)
            return -1;
    return 0;
}

static int verbs_give(struct transport *base, struct slot *slot, struct trouble *trouble)
{
    return verbs_post_receive((struct verbs *)base, slot, trouble);
}

static int take_received(struct verbs *verbs, struct slot *slot, uint32_t length,
                         struct transport_event *event, struct trouble *trouble)
{
    struct record record;
    const char *why = length < RECORD_BYTES
                          ? "a message that is shorter than a record"
                          : record_get(&record, slot->bytes, verbs->base.data_most);
    if (!why && length != RECORD_BYTES + record.length)
        why = "a message of another length than it says";
    if (why)
        return transport_refuse(&verbs->base, why, trouble);
    bool data = record.type == RECORD_DATA;
    slot->length = record.length;
    *event = (struct transport_event){
        .kind = data ? EVENT_DATA : EVENT_RECORD,
        .record = record,
        .body = slot->bytes + RECORD_BYTES,
        .slot = data ? slot : NULL,
    };
    bool once = verbs->receives && small(verbs, slot);
    verbs->spent = data || once ? NULL : slot;
    return 1;
}

/* 1: an event; 0: nothing to tell; -1: trouble. */
static int take_completion(struct verbs *verbs, const struct ibv_wc *done,
                           struct transport_event *event, struct trouble *trouble)
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
            what = "left without a word"; /* it was killed while data came in */
        verbs->failed = true;
        verbs->base.peer_left = true; /* nothing more can be said to it */
        return fault(trouble, "%s %s (%s)", verbs->base.peer, what,
                     ibv_wc_status_str(done->status));
    }
    if (done->opcode == IBV_WC_RECV)
        return take_received(verbs, slot, done->byte_len, event, trouble);
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

/* There is one at most: the queue is armed again only when it was taken. */
static void take_completion_event(struct verbs *verbs)
{
    struct ibv_cq *cq;
    void *context;
    if (verbs->armed && ibv_get_cq_event(verbs->completions, &cq, &context) == 0) {
        ibv_ack_cq_events(cq, 1);
        verbs->armed = false;
    }
}

/* The queue was found empty: what comes from now on wakes who waits. -1: trouble. */
static int rest(struct verbs *verbs, struct trouble *trouble)
{
    take_completion_event(verbs);
    take_cm_events(verbs);
    int error = verbs->armed ? 0 : ibv_req_notify_cq(verbs->cq, 0);
    if (error)
        return fault(trouble, "ibv_req_notify_cq: %s", strerror(error));
    verbs->armed = true;
    return 0;
}

static int verbs_poll(struct transport *base, struct transport_event *event,
                      struct trouble *trouble)
{
    struct verbs *verbs = (struct verbs *)base;
    struct ibv_wc done;
    int got;
    if (verbs->spent && !verbs->failed &&
        verbs_post_receive(verbs, verbs->spent, trouble) < 0)
        return -1;
    verbs->spent = NULL;
    for (bool rested = base->quiet && verbs->armed;;) {
        while ((got = ibv_poll_cq(verbs->cq, 1, &done)) > 0) {
            int told = take_completion(verbs, &done, event, trouble);
            if (told)
                return told;
        }
        if (got < 0)
            return fault(trouble, "ibv_poll_cq: %m");
        if (rested)
            break; /* and what came before the word of its end has been told before */
        if (rest(verbs, trouble) < 0)
            return -1;
        rested = true;
    }
    base->quiet = true;
    if (!verbs->disconnected)
        return 0;
    base->peer_left = true;
    return fault(trouble, "%s left without a word", base->peer);
}

static int verbs_fds(struct transport *base, struct pollfd *polled)
{
    struct verbs *verbs = (struct verbs *)base;
    base->quiet = false;
    polled[0] = (struct pollfd){verbs->id->channel->fd, POLLIN, 0};
    polled[1] = (struct pollfd){verbs->completions->fd, POLLIN, 0};
    return 2;
}

/* A send that completed is in the other end's memory, so nothing said is lost. */
static uint64_t verbs_left(struct transport *base)
{
    struct verbs *verbs = (struct verbs *)base;
    struct trouble ignored = {0};
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
        rdma_destroy_qp(verbs->id); /* the device lets go of the memory first */
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

const struct transport_kind verbs_kind = {
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
