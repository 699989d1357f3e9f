/* Minimal fake RDMA device: see fake_verbs.h. */
#include "fake_verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The headers define macros of these names around the functions. */
#undef ibv_reg_mr
#undef ibv_get_device_list

enum { POSTED_MOST = 2048, EVENTS_MOST = 16 };

struct posted {
    uint64_t id;
    struct ibv_sge piece;
};

struct queue {
    struct posted row[POSTED_MOST]; /* entries from `begin` on are not completed */
    uint32_t begin, end;
    uint32_t taken; /* posted, with a completion not polled yet */
};

struct fake fake;
static struct queue sends, receives;
static struct ibv_wc completions[2 * POSTED_MOST];
static uint32_t completion_at;
static struct ibv_qp_cap cap;
static int cqe, unanswered, registered;
static bool armed, has_qp;
static enum rdma_cm_event_type events[EVENTS_MOST];
static uint32_t event_at, event_count;
static struct rdma_event_channel *told; /* the channel for `events` */
static struct ibv_device device = {.name = "fake0"};
static struct ibv_context context;
static struct ibv_cq cq;
static struct ibv_qp qp;

static void breaks(const char *rule)
{
    fake.broken = fake.broken ? fake.broken : rule;
}

static void moment(void)
{
    if (fake.moment)
        fake.moment();
}

static int channel_fd(void)
{
    return eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
}

static void complete(const struct ibv_wc *done)
{
    if ((int)fake.queued == cqe) {
        breaks("more completions than the queue holds");
        return;
    }
    completions[(completion_at + fake.queued++) % (2 * POSTED_MOST)] = *done;
    if (armed)
        eventfd_write(cq.channel->fd, 1);
    armed = false;
}

static struct posted *oldest(struct queue *queue, uint32_t *waiting)
{
    if (queue->begin == queue->end)
        return NULL;
    --*waiting;
    return &queue->row[queue->begin++ % POSTED_MOST];
}

bool fake_sent(enum ibv_wc_status status)
{
    const struct posted *done = oldest(&sends, &fake.waiting_sends);
    if (done)
        complete(&(struct ibv_wc){
            .wr_id = done->id, .status = status, .opcode = IBV_WC_SEND});
    return done;
}

bool fake_came(const void *message, uint32_t length)
{
    const struct posted *done = oldest(&receives, &fake.waiting_receives);
    if (!done)
        return false;
    if (length > done->piece.length)
        breaks("a message that is longer than its receive");
    else
        memcpy((void *)(uintptr_t)done->piece.addr, message, length);
    complete(&(struct ibv_wc){.wr_id = done->id,
                              .status = IBV_WC_SUCCESS,
                              .opcode = IBV_WC_RECV,
                              .byte_len = length});
    return true;
}

/* As on real devices, the opcode of a flushed completion is meaningless. */
void fake_flush(void)
{
    const struct posted *done;
    while ((done = oldest(&sends, &fake.waiting_sends)) ||
           (done = oldest(&receives, &fake.waiting_receives)))
        complete(&(struct ibv_wc){.wr_id = done->id, .status = IBV_WC_WR_FLUSH_ERR});
}

/* --- functions behind ibv_poll_cq and similar calls --- */

static int poll_cq(struct ibv_cq *queue, int room, struct ibv_wc *into)
{
    (void)queue, (void)room;
    moment();
    if (!fake.queued)
        return 0;
    *into = completions[completion_at++ % (2 * POSTED_MOST)];
    fake.queued--;
    struct queue *left = into->opcode == IBV_WC_RECV ? &receives : &sends;
    left->taken -= left->taken > 0;
    return 1;
}

static int req_notify_cq(struct ibv_cq *queue, int solicited_only)
{
    (void)queue, (void)solicited_only;
    moment(); /* a completion arriving now triggers no wake-up */
    armed = true;
    moment();
    return 0;
}

static int post(struct queue *queue, uint32_t most, uint64_t id,
                const struct ibv_sge *piece, uint32_t *waiting)
{
    if (queue->taken == most)
        return ENOMEM;
    queue->row[queue->end++ % POSTED_MOST] = (struct posted){id, *piece};
    queue->taken++;
    ++*waiting;
    return 0;
}

static int post_send(struct ibv_qp *pair, struct ibv_send_wr *work,
                     struct ibv_send_wr **bad)
{
    (void)pair, (void)bad;
    if (!(work->send_flags & IBV_SEND_SIGNALED) || work->next)
        breaks("a send that nobody is told of");
    return post(&sends, cap.max_send_wr, work->wr_id, work->sg_list,
                &fake.waiting_sends);
}

static int post_recv(struct ibv_qp *pair, struct ibv_recv_wr *work,
                     struct ibv_recv_wr **bad)
{
    (void)pair, (void)bad;
    return post(&receives, cap.max_recv_wr, work->wr_id, work->sg_list,
                &fake.waiting_receives);
}

/* --- libibverbs --- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *of)
{
    static struct ibv_comp_channel channel;
    (void)of;
    channel.fd = channel_fd();
    fake.open++;
    return &channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    close(channel->fd);
    fake.open--;
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *of, int entries, void *user,
                             struct ibv_comp_channel *channel, int vector)
{
    (void)user, (void)vector;
    errno = EINVAL;
    if (entries < 1 || (fake.cqe_most && entries > fake.cqe_most))
        return NULL;
    cqe = entries;
    cq.context = of;
    cq.channel = channel;
    fake.open++;
    return &cq;
}

int ibv_destroy_cq(struct ibv_cq *queue)
{
    (void)queue;
    if (has_qp)
        breaks("a completion queue is undone before its queue pair");
    if (unanswered)
        breaks("ibv_destroy_cq waits for ever for an event to be acknowledged");
    fake.open--;
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **queue,
                     void **user)
{
    eventfd_t one;
    moment();
    if (eventfd_read(channel->fd, &one) < 0)
        return -1;
    *queue = &cq;
    *user = NULL;
    unanswered++;
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *queue, unsigned count)
{
    (void)queue;
    unanswered -= (int)count;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *memory, size_t bytes, int access)
{
    struct ibv_mr *mr = malloc(sizeof *mr);
    *mr = (struct ibv_mr){.pd = pd, .addr = memory, .length = bytes};
    fake.access |= access;
    fake.open++;
    registered++;
    return mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    free(mr);
    if (has_qp)
        breaks("memory is taken from a queue pair that may use it");
    fake.open--;
    registered--;
    return 0;
}

struct ibv_device **ibv_get_device_list(int *count)
{
    static struct ibv_device *list[] = {&device, NULL};
    if (count)
        *count = 1;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    (void)list;
}

const char *ibv_get_device_name(struct ibv_device *of)
{
    return of->name;
}

/* --- librdmacm --- */

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
                   struct ibv_qp_init_attr *wanted)
{
    (void)pd;
    cap = wanted->cap;
    errno = EINVAL;
    if (!cap.max_send_wr || !cap.max_recv_wr || !cap.max_send_sge || !cap.max_recv_sge)
        return -1; /* strict providers allow nothing where a capacity is zero */
    errno = ENOMEM;
    if (fake.wr_most && (cap.max_send_wr > fake.wr_most || cap.max_recv_wr > fake.wr_most))
        return -1;
    qp.context = id->verbs;
    id->qp = &qp;
    has_qp = true;
    fake.open++;
    return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
    id->qp = NULL;
    has_qp = false;
    fake.open--;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
    struct rdma_event_channel *channel = malloc(sizeof *channel);
    channel->fd = channel_fd();
    event_at = event_count = 0;
    fake.open++;
    return channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
    close(channel->fd);
    free(channel);
    fake.open--;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
                   void *user, enum rdma_port_space space)
{
    *id = calloc(1, sizeof **id);
    **id = (struct rdma_cm_id){.channel = channel, .context = user, .ps = space};
    told = channel;
    fake.open++;
    return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
    if (registered)
        breaks("an id is undone before what is registered in its domain");
    if (has_qp)
        breaks("an id is undone before its queue pair");
    free(id);
    fake.open--;
    return 0;
}

void fake_event(enum rdma_cm_event_type kind)
{
    events[(event_at + event_count++) % EVENTS_MOST] = kind;
    eventfd_write(told->fd, 1);
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    static struct rdma_cm_event next;
    eventfd_t one;
    if (eventfd_read(channel->fd, &one) < 0)
        return -1;
    next.event = events[event_at++ % EVENTS_MOST];
    event_count--;
    *event = &next;
    return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    (void)event;
    return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to,
                      int limit_ms)
{
    (void)from, (void)to, (void)limit_ms;
    id->verbs = &context;
    id->port_num = 1;
    fake_event(RDMA_CM_EVENT_ADDR_RESOLVED);
    return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int limit_ms)
{
    (void)id, (void)limit_ms;
    fake_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
    return 0;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value,
                    size_t length)
{
    (void)id, (void)length;
    if (level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_ACK_TIMEOUT)
        fake.ack_timeout = *(uint8_t *)value;
    return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *wanted)
{
    (void)id;
    fake.wanted = *wanted;
    if (fake.answer != RDMA_CM_EVENT_CONNECT_REQUEST)
        fake_event(fake.answer);
    return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
    (void)id;
    fake.disconnected = true;
    return 0;
}

/* --- the test's side --- */

void fake_reset(void)
{
    fake = (struct fake){.answer = RDMA_CM_EVENT_ESTABLISHED};
    sends = receives = (struct queue){.begin = 0};
    completion_at = event_at = event_count = 0;
    cqe = unanswered = registered = 0;
    armed = has_qp = false;
    context.device = &device;
    context.ops.poll_cq = poll_cq;
    context.ops.req_notify_cq = req_notify_cq;
    context.ops.post_send = post_send;
    context.ops.post_recv = post_recv;
    cq.context = &context;
}

struct rdma_cm_id *fake_id(void)
{
    struct rdma_cm_id *id;
    rdma_create_id(rdma_create_event_channel(), &id, NULL, RDMA_PS_TCP);
    id->verbs = &context;
    return id;
}
