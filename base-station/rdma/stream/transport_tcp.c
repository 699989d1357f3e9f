/* Records over TCP: see transport.h.
 *
 * Out: what has begun is finished, then control records, then data. In: a header, then
 * its body, data straight into a slot that was given. A peer that sends data without a
 * slot for it exceeds its credits.
 */
#include "transport.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "descriptors.h"
#include "net.h"
#include "signals.h"

enum { LOOK_MS = 50 }; /* how far what was said has come, when nothing tells */

struct tcp {
    struct transport base;
    int fd;

    uint8_t in[CONTROL_BYTES];
    uint32_t in_have; /* of the header and the body so far */
    struct record in_record;
    bool in_known; /* in_record is read */
    struct slot *in_slot;
    struct slots given;

    uint8_t control[CONTROLS_MOST * CONTROL_BYTES];
    size_t control_length, control_sent;
    uint32_t control_count;
    struct slots queued, sent;
    size_t queued_sent; /* of the first of `queued` */
    bool broken;        /* nothing can be sent; what the peer said last can be read */
};

static int tcp_ring(struct transport *base, struct ring *ring, struct trouble *trouble)
{
    (void)base, (void)ring, (void)trouble;
    return 0;
}

static bool tcp_sending(const struct transport *base)
{
    const struct tcp *tcp = (const struct tcp *)base;
    return !tcp->broken && (tcp->control_length || tcp->queued.first);
}

/* Returns the bytes sent; 0 where the socket is full or broken. */
static size_t send_some(struct tcp *tcp, const uint8_t *bytes, size_t length)
{
    ssize_t sent;
    do
        sent = send(tcp->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return (size_t)sent;
    tcp->broken = errno != EAGAIN && errno != EWOULDBLOCK;
    return 0;
}

static bool send_control(struct tcp *tcp)
{
    size_t left = tcp->control_length - tcp->control_sent;
    tcp->control_sent += send_some(tcp, tcp->control + tcp->control_sent, left);
    if (tcp->control_sent < tcp->control_length)
        return false;
    tcp->control_length = tcp->control_sent = tcp->control_count = 0;
    return true;
}

static bool send_slot(struct tcp *tcp)
{
    struct slot *slot = tcp->queued.first;
    size_t length = RECORD_BYTES + (size_t)slot->length;
    tcp->queued_sent +=
        send_some(tcp, slot->bytes + tcp->queued_sent, length - tcp->queued_sent);
    if (tcp->queued_sent < length)
        return false;
    tcp->queued_sent = 0;
    slots_put(&tcp->sent, slots_take(&tcp->queued));
    return true;
}

static void tcp_pump(struct tcp *tcp)
{
    while (!tcp->broken) {
        if (tcp->queued_sent == 0 && tcp->control_length) {
            if (!send_control(tcp))
                return;
        } else if (!tcp->queued.first || !send_slot(tcp)) {
            return;
        }
    }
}

static int tcp_control(struct transport *base, const uint8_t *record,
                       struct trouble *trouble)
{
    struct tcp *tcp = (struct tcp *)base;
    struct record header;
    const char *why = record_get(&header, record, 0);
    if (why)
        return fault(trouble, "cannot send: %s", why);
    bool later = header.type == RECORD_HEARTBEAT || header.type == RECORD_CREDIT;
    if (tcp->broken || tcp->control_count >= CONTROLS_MOST - (later ? 1 : 0) ||
        tcp->control_length + CONTROL_BYTES > sizeof tcp->control)
        return 1;
    size_t length = RECORD_BYTES + header.length;
    memcpy(tcp->control + tcp->control_length, record, length);
    tcp->control_length += length;
    tcp->control_count++;
    tcp_pump(tcp);
    return 0;
}

static int tcp_post(struct transport *base, struct slot *slot, struct trouble *trouble)
{
    (void)trouble;
    struct tcp *tcp = (struct tcp *)base;
    slots_put(&tcp->queued, slot);
    tcp_pump(tcp);
    return 0;
}

static int tcp_give(struct transport *base, struct slot *slot, struct trouble *trouble)
{
    (void)trouble;
    struct tcp *tcp = (struct tcp *)base;
    slots_push(&tcp->given, slot); /* what is warm is used next */
    return 0;
}

static int left(struct tcp *tcp, int error, struct trouble *trouble)
{
    tcp->base.peer_left = true;
    return fault(trouble, "%s left without a word%s%s%s", tcp->base.peer,
                 error ? ": " : "", error ? strerror(error) : "",
                 tcp->in_have ? ", in the middle of a record" : "");
}

/* Reads up to `length` bytes of the record. 1: some; 0: none now; -1: trouble. */
static int receive(struct tcp *tcp, uint8_t *into, uint32_t length,
                   struct trouble *trouble)
{
    ssize_t got;
    do
        got = recv(tcp->fd, into, length, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got > 0) {
        tcp->in_have += (uint32_t)got;
        tcp->base.heard_bytes += (uint64_t)got;
        tcp->base.in_part = true;
        return 1;
    }
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    return left(tcp, got < 0 ? errno : 0, trouble);
}

static int take_header(struct tcp *tcp, struct trouble *trouble)
{
    const char *why = record_get(&tcp->in_record, tcp->in, tcp->base.data_most);
    if (!why && tcp->in_record.type == RECORD_DATA) {
        tcp->in_slot = slots_take(&tcp->given);
        if (!tcp->in_slot)
            why = "more data than it has credits for";
        else
            memcpy(tcp->in_slot->bytes, tcp->in, RECORD_BYTES);
    }
    if (why)
        return fault(trouble, "refused what %s sent: %s", tcp->base.peer, why);
    tcp->in_known = true;
    return 0;
}

/* One step towards a whole record. 1: moved on; 0: nothing there; -1: trouble. */
static int read_some(struct tcp *tcp, struct trouble *trouble)
{
    if (!tcp->in_known) {
        int got = receive(tcp, tcp->in + tcp->in_have, RECORD_BYTES - tcp->in_have,
                          trouble);
        if (got <= 0 || tcp->in_have < RECORD_BYTES)
            return got;
        return take_header(tcp, trouble) < 0 ? -1 : 1;
    }
    uint8_t *into = tcp->in_slot ? tcp->in_slot->bytes : tcp->in;
    uint32_t left = RECORD_BYTES + tcp->in_record.length - tcp->in_have;
    return receive(tcp, into + tcp->in_have, left, trouble);
}

static bool whole_record(const struct tcp *tcp)
{
    return tcp->in_known && tcp->in_have == RECORD_BYTES + tcp->in_record.length;
}

static int tcp_poll(struct transport *base, struct transport_event *event,
                    struct trouble *trouble)
{
    struct tcp *tcp = (struct tcp *)base;
    tcp_pump(tcp);
    struct slot *slot = slots_take(&tcp->sent);
    if (slot) {
        *event = (struct transport_event){.kind = EVENT_SENT, .slot = slot};
        return 1;
    }
    while (!whole_record(tcp)) {
        int moved = read_some(tcp, trouble);
        if (moved <= 0)
            return moved;
    }
    slot = tcp->in_slot;
    if (slot)
        slot->length = tcp->in_record.length;
    *event = (struct transport_event){
        .kind = slot ? EVENT_DATA : EVENT_RECORD,
        .record = tcp->in_record,
        .body = (slot ? slot->bytes : tcp->in) + RECORD_BYTES,
        .slot = slot,
    };
    tcp->in_have = 0;
    tcp->in_known = tcp->base.in_part = false;
    tcp->in_slot = NULL;
    return 1;
}

static int tcp_fds(struct transport *base, struct pollfd *polled)
{
    struct tcp *tcp = (struct tcp *)base;
    polled->fd = tcp->fd;
    polled->events = (short)(POLLIN | (tcp_sending(base) ? POLLOUT : 0));
    polled->revents = 0;
    return 1;
}

/* The bytes that the peer has not acknowledged yet. */
static uint64_t underway(const struct tcp *tcp)
{
    int waiting = 0;
    uint64_t bytes = tcp->control_length - tcp->control_sent;
    for (const struct slot *slot = tcp->queued.first; slot; slot = slot->next)
        bytes += RECORD_BYTES + (uint64_t)slot->length;
    ioctl(tcp->fd, SIOCOUTQ, &waiting);
    return bytes - tcp->queued_sent + (uint64_t)waiting;
}

/* A socket closed with bytes unread resets the connection, and the peer may lose what
 * was said last: so all is read first. */
static void tcp_finish(struct transport *base, int limit_ms)
{
    struct tcp *tcp = (struct tcp *)base;
    struct patience patience = patience_begin(limit_ms, underway(tcp));
    struct trouble ignored = {0};
    bool shut = false;
    static uint8_t nowhere[65536];
    for (;;) {
        tcp_pump(tcp);
        if (!shut && !tcp_sending(base)) {
            shutdown(tcp->fd, SHUT_WR);
            shut = true;
        }
        ssize_t got = recv(tcp->fd, nowhere, sizeof nowhere, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
            return;
        if (!patience_left(&patience, underway(tcp)))
            return;
        struct pollfd polled;
        tcp_fds(base, &polled);
        if (got < 0 && signals_wait(&polled, 1, now_ms() + LOOK_MS, &ignored) < 0)
            return;
    }
}

static void tcp_close(struct transport *base)
{
    struct tcp *tcp = (struct tcp *)base;
    close(tcp->fd);
    free(tcp);
}

static const struct transport_kind tcp_kind = {
    .name = "tcp",
    .number = TRANSPORT_TCP,
    .ring = tcp_ring,
    .control = tcp_control,
    .post = tcp_post,
    .give = tcp_give,
    .poll = tcp_poll,
    .fds = tcp_fds,
    .sending = tcp_sending,
    .finish = tcp_finish,
    .close = tcp_close,
};

struct transport *tcp_open(int fd, struct trouble *trouble)
{
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    struct tcp *tcp = calloc(1, sizeof *tcp);
    int one = 1;
    if (!tcp || getpeername(fd, (struct sockaddr *)&peer, &length) < 0) {
        fault(trouble, "cannot use a connection: %m");
        free(tcp);
        close(fd);
        return NULL;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    tcp->base.kind = &tcp_kind;
    bool near = peer.ss_family == AF_UNIX; /* a leash, which passes it on */
    tcp->base.loopback = near || net_is_loopback((struct sockaddr *)&peer);
    tcp->base.foreign = !near && net_is_foreign((struct sockaddr *)&peer);
    tcp->fd = fd;
    if (near)
        snprintf(tcp->base.peer, sizeof tcp->base.peer, "the SSH session");
    else
        net_name((struct sockaddr *)&peer, length, tcp->base.peer, sizeof tcp->base.peer);
    return &tcp->base;
}

struct transport *tcp_dial(const struct sockaddr *address, socklen_t length,
                           const struct sockaddr *from, socklen_t from_length,
                           int64_t limit_ms, struct trouble *trouble)
{
    char name[80];
    net_name(address, length, name, sizeof name);
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0;
    socklen_t error_length = sizeof error;
    if (fd < 0 || (from && bind(fd, from, from_length) < 0))
        error = errno;
    else if (connect(fd, address, length) < 0)
        error = errno;
    if (error == EINPROGRESS) {
        struct pollfd polled = {fd, POLLOUT, 0};
        int ready = signals_wait(&polled, 1, now_ms() + limit_ms, trouble);
        error = ETIMEDOUT;
        if (ready > 0)
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_length);
    }
    if (!error)
        return tcp_open(fd, trouble);
    shut(&fd);
    fault(trouble, "%s: %s", name, net_advice(error));
    return NULL;
}
