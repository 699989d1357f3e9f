/* Records over RDMA: see transport.h. Each record is one message (a send), received into
 * buffers that the other end cannot write to at will: local write is all they allow.
 *
 * Completions: the queue is armed first, then drained until it is empty, so that no
 * completion that came in between waits for an event; one event may stand for many.
 */
#include "transport_verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "descriptors.h"
#include "signals.h"
#include "verbs.h"

enum { WORK_RECEIVE, WORK_DATA, WORK_CONTROL, WORK_MASK = 3 };

static uint64_t work_id(const struct slot *slot, int work)
{
    return (uint64_t)(uintptr_t)slot | (unsigned)work; /* slots are aligned to 8 */
}

static bool holds(const struct slot *slots, const struct slot *slot)
{
    return slot >= slots && slot < slots + CONTROL_RECEIVES;
}

static uint32_t lkey_of(const struct verbs *verbs, const struct slot *slot)
{
    if (holds(verbs->control_in, slot))
        return verbs->control_mr->lkey;
    return holds(verbs->spare, slot) ? verbs->spare_mr->lkey : verbs->ring_mr->lkey;
}

int verbs_post_receive(struct verbs *verbs, struct slot *slot, struct trouble *trouble)
{
    bool small = holds(verbs->control_in, slot);
    struct ibv_sge piece = {
        .addr = (uintptr_t)slot->bytes,
        .length = small ? CONTROL_BYTES
                        : RECORD_BYTES + verbs->ring->chunk + SEAL_BYTES,
        .lkey = lkey_of(verbs, slot),
    };
    struct ibv_recv_wr work = {
        .wr_id = work_id(slot, WORK_RECEIVE), .sg_list = &piece, .num_sge = 1};
    struct ibv_recv_wr *bad;
    int error = ibv_post_recv(verbs->id->qp, &work, &bad);
    if (error)
        return fault(trouble, "ibv_post_recv: %s", strerror(error));
    return 0;
}

static int post_send(struct verbs *verbs, struct slot *slot, size_t length, int kind,
                     uint32_t lkey, struct trouble *trouble)
{
    struct ibv_sge piece = {
        .addr = (uintptr_t)slot->bytes, .length = (uint32_t)length, .lkey = lkey};
    struct ibv_send_wr work = {
        .wr_id = work_id(slot, kind),
        .sg_list = &piece,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
    };
    struct ibv_send_wr *bad;
    int error = ibv_post_send(verbs->id->qp, &work, &bad);
    if (error)
        return fault(trouble, "ibv_post_send: %s", strerror(error));
    verbs->in_flight++;
    return 0;
}

uint8_t *verbs_pages(size_t bytes, struct trouble *trouble)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0);
    if (memory != MAP_FAILED)
        return memory;
    fault(trouble, "no memory: %m");
    return NULL;
}

/* Large pages are pinned sooner; a command's process has no need of any, and what is
 * pinned would be copied for it, or, before Linux 5.12, taken from us. */
struct ibv_mr *verbs_pin(struct verbs *verbs, void *memory, size_t bytes,
                         struct trouble *trouble)
{
    madvise(memory, bytes, MADV_HUGEPAGE);
    madvise(memory, bytes, MADV_DONTFORK);
    struct ibv_mr *mr = ibv_reg_mr(verbs->pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (!mr)
        fault(trouble,
              "cannot pin %zu KiB for RDMA: %s: raise `ulimit -l`, or give fewer "
              "--credits or a smaller --chunk", bytes >> 10, strerror(errno));
    return mr;
}

/* The receiver's control receives must hold data too: messages fill the receives in
 * turn, whatever they are. */
static int post_spares(struct verbs *verbs, struct trouble *trouble)
{
    struct ring *ring = verbs->ring;
    verbs->spare_bytes = ring->slot_bytes * CONTROL_RECEIVES;
    verbs->spare_memory = verbs_pages(verbs->spare_bytes, trouble);
    if (!verbs->spare_memory)
        return -1;
    verbs->spare_mr = verbs_pin(verbs, verbs->spare_memory, verbs->spare_bytes, trouble);
    if (!verbs->spare_mr)
        return -1;
    for (int i = 0; i < CONTROL_RECEIVES; i++) {
        verbs->spare[i].bytes = verbs->spare_memory + ring->slot_bytes * (size_t)i;
        if (verbs_post_receive(verbs, &verbs->spare[i], trouble) < 0)
            return -1;
    }
    return 0;
}

static int verbs_ring(struct transport *base, struct ring *ring, struct trouble *trouble)
{
    struct verbs *verbs = (struct verbs *)base;
    verbs->ring = ring;
    verbs->ring_mr = verbs_pin(verbs, ring->memory, ring->slot_bytes * ring->count,
                               trouble);
    if (!verbs->ring_mr)
        return -1;
    return verbs->receives ? post_spares(verbs, trouble) : 0;
}

static int verbs_control(struct transport *base, const uint8_t *record,
                         struct trouble *trouble)
{
    struct verbs *verbs = (struct verbs *)base;
    struct record header;
    const char *why = record_get(&header, record, 0);
    if (why)
        return fault(trouble, "cannot send: %s", why);
    bool later = header.type == RECORD_HEARTBEAT || header.type == RECORD_CREDIT;
    /* The receiver has nothing to take a record with between its proof and its first
     * credit; one that came then would wait 0.7 s for its next try. */
    if (!verbs->receives && !verbs->credited &&
        (header.type == RECORD_END || header.type == RECORD_HEARTBEAT))
        return 1;
    if (verbs->failed || !verbs->control_free.first ||
        (later && verbs->control_free.first == verbs->control_free.last))
        return 1;
    struct slot *slot = slots_take(&verbs->control_free);
    size_t length = RECORD_BYTES + header.length;
    memcpy(slot->bytes, record, length);
    return post_send(verbs, slot, length, WORK_CONTROL, verbs->control_mr->lkey, trouble);
}

static int verbs_post(struct transport *base, struct slot *slot, struct trouble *trouble)
{
    struct verbs *verbs = (struct verbs *)base;
    return post_send(verbs, slot, RECORD_BYTES + (size_t)slot->length, WORK_DATA,
                     verbs->ring_mr->lkey, trouble);
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
        return fault(trouble, "refused what %s sent: %s", verbs->base.peer, why);
    bool data = record.type == RECORD_DATA;
    verbs->credited |= record.type == RECORD_CREDIT;
    slot->length = record.length;
    *event = (struct transport_event){
        .kind = data ? EVENT_DATA : EVENT_RECORD,
        .record = record,
        .body = slot->bytes + RECORD_BYTES,
        .slot = data ? slot : NULL,
    };
    bool once = verbs->receives && holds(verbs->control_in, slot);
    verbs->spent = data || once ? NULL : slot;
    return 1;
}

/* 1: an event; 0: nothing to tell; -1: trouble. */
static int take_completion(struct verbs *verbs, const struct ibv_wc *done,
                           struct transport_event *event, struct trouble *trouble)
{
    struct slot *slot = (void *)(uintptr_t)(done->wr_id & ~(uint64_t)WORK_MASK);
    int work = (int)(done->wr_id & WORK_MASK);
    if (work != WORK_RECEIVE)
        verbs->in_flight--;
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
    if (work == WORK_CONTROL) {
        slots_put(&verbs->control_free, slot);
        return 0;
    }
    *event = (struct transport_event){.kind = EVENT_SENT, .slot = slot};
    return 1;
}

static void take_cm_events(struct verbs *verbs)
{
    struct rdma_cm_event *event;
    while (rdma_get_cm_event(verbs->events, &event) == 0) {
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

struct look { /* what one verbs_poll has done about an empty queue */
    bool armed, asked;
};

/* The queue was found empty. 1: look again; 0: it is, and what comes next wakes us; -1:
 * trouble. The connection manager is asked when nothing else woke us: its descriptor
 * stays ready, and what came before its word is told before it. */
static int rest(struct verbs *verbs, struct look *look, struct trouble *trouble)
{
    if (!look->armed)
        take_completion_event(verbs);
    if (!verbs->armed) {
        int error = ibv_req_notify_cq(verbs->cq, 0);
        if (error)
            return fault(trouble, "ibv_req_notify_cq: %s", strerror(error));
        verbs->armed = look->armed = true;
        verbs->base.quiet = verbs->moves && !verbs->failed;
        return 1;
    }
    if (look->asked || (verbs->moves && !verbs->failed))
        return 0;
    look->asked = true;
    take_cm_events(verbs);
    return 1;
}

static int verbs_poll(struct transport *base, struct transport_event *event,
                      struct trouble *trouble)
{
    struct verbs *verbs = (struct verbs *)base;
    struct look look = {.armed = false};
    struct ibv_wc done;
    int got = 1;
    verbs->drained = false;
    if (verbs->spent && !verbs->failed &&
        verbs_post_receive(verbs, verbs->spent, trouble) < 0)
        return -1;
    verbs->spent = NULL;
    while (got > 0) {
        got = ibv_poll_cq(verbs->cq, 1, &done);
        if (got < 0)
            return fault(trouble, "ibv_poll_cq: %m");
        verbs->moves |= got > 0;
        int told = got ? take_completion(verbs, &done, event, trouble) : 0;
        if (told)
            return told;
        if (!got && !(base->quiet && verbs->armed) &&
            (got = rest(verbs, &look, trouble)) < 0)
            return -1;
    }
    verbs->drained = base->quiet = true;
    verbs->moves = false;
    if (!verbs->disconnected)
        return 0;
    verbs->base.peer_left = true;
    return fault(trouble, "%s left without a word", verbs->base.peer);
}

static int verbs_fds(struct transport *base, struct pollfd *polled)
{
    struct verbs *verbs = (struct verbs *)base;
    base->quiet = false;
    polled[0] = (struct pollfd){verbs->events->fd, POLLIN, 0};
    polled[1] = (struct pollfd){verbs->completions->fd, POLLIN, 0};
    /* What the last poll() left in the queue brings no event: always ready, then. */
    polled[2] = (struct pollfd){verbs->drained ? -1 : verbs->ready_fd, POLLIN, 0};
    return 3;
}

static bool verbs_sending(const struct transport *base)
{
    const struct verbs *verbs = (const struct verbs *)base;
    return verbs->in_flight > 0 && !verbs->failed;
}

/* A send that completed is in the other end's memory, so nothing said is lost. */
static void verbs_finish(struct transport *base, int limit_ms)
{
    struct verbs *verbs = (struct verbs *)base;
    struct trouble ignored = {0};
    struct transport_event event;
    struct patience patience = patience_begin(limit_ms, verbs->in_flight);
    while (verbs_sending(base)) {
        int got = verbs_poll(base, &event, &ignored);
        if (got < 0 || !patience_left(&patience, verbs->in_flight))
            break;
        struct pollfd polled[TRANSPORT_FDS];
        int count = verbs_fds(base, polled);
        if (got == 0 && verbs_sending(base) &&
            signals_wait(polled, count, patience.end_ms, &ignored) < 0)
            break;
    }
    rdma_disconnect(verbs->id);
}

static void verbs_close(struct transport *base)
{
    struct verbs *verbs = (struct verbs *)base;
    if (verbs->has_qp)
        rdma_destroy_qp(verbs->id); /* the device lets go of the memory first */
    if (verbs->spare_mr)
        ibv_dereg_mr(verbs->spare_mr);
    if (verbs->spare_memory)
        munmap(verbs->spare_memory, verbs->spare_bytes);
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
    if (verbs->pd)
        ibv_dealloc_pd(verbs->pd);
    shut(&verbs->ready_fd);
    rdma_destroy_id(verbs->id);
    rdma_destroy_event_channel(verbs->events);
    free(verbs);
}

const struct transport_kind verbs_kind = {
    .name = "rdma",
    .number = TRANSPORT_RDMA,
    .ordered = true,
    .ring = verbs_ring,
    .control = verbs_control,
    .post = verbs_post,
    .give = verbs_give,
    .poll = verbs_poll,
    .fds = verbs_fds,
    .sending = verbs_sending,
    .finish = verbs_finish,
    .close = verbs_close,
};
