/* Common code of all transports, and records over TCP: see transport.h.
 *
 * Out: a started record is finished, then control records, then data. In: a header, then its
 * body, data directly into a given slot. A peer that sends data without a free slot exceeds its
 * credits. */
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

#if !VERBS
const struct rdma *const rdma = NULL;
#endif

enum { LOOK_MS = 50 }; /* poll interval for unsent data, in the absence of events */

void transport_open(struct transport *transport, const struct transport_kind *kind, uint8_t *memory)
{
    transport->kind = kind;
    for (int i = 0; i < CONTROLS_MOST; i++) {
        transport->control[i].bytes = memory + (size_t)i * CONTROL_BYTES;
        slots_put(&transport->control_free, &transport->control[i]);
    }
}

void transport_name(struct transport *transport, const struct sockaddr *peer)
{
    net_name(peer, transport->peer, sizeof transport->peer);
    transport->foreign = net_is_foreign(peer);
}

int transport_refuse(const struct transport *transport, const char *why, struct error *error)
{
    return fault(error, "refused what %s sent: %s", transport->peer, why);
}

bool transport_controls(const struct transport *transport, const struct slot *slot)
{
    return slot >= transport->control && slot < transport->control + CONTROLS_MOST;
}

int transport_say(struct transport *transport, const uint8_t *record, struct error *error)
{
    struct slots *free = &transport->control_free;
    struct record header;
    const char *why = record_get(&header, record, 0);
    if (why)
        return fault(error, "cannot send: %s", why);
    bool later = header.type == RECORD_HEARTBEAT || header.type == RECORD_CREDIT;
    if (!free->first || (later && free->first == free->last))
        return 1;
    struct slot *slot = slots_take(free);
    slot->length = header.length;
    memcpy(slot->bytes, record, RECORD_BYTES + header.length);
    return transport->kind->post(transport, slot, error);
}

void transport_finish(struct transport *transport, int limit_ms)
{
    int64_t begin_ms = now_ms(), end_ms = begin_ms;
    uint64_t left, least = UINT64_MAX;
    struct error ignored = {0};
    while ((left = transport->kind->left(transport))) {
        int64_t now = now_ms();
        if (left < least)
            end_ms = now + limit_ms;
        least = left < least ? left : least;
        struct pollfd polled[TRANSPORT_FDS];
        int count = transport->kind->fds(transport, polled);
        if (now >= end_ms || now >= begin_ms + FINISH_MOST_MS ||
            signals_wait(polled, count, now + LOOK_MS, &ignored) < 0)
            break;
    }
    if (transport->kind->leave)
        transport->kind->leave(transport);
}

void transport_close(struct transport *transport)
{
    if (transport)
        transport->kind->close(transport);
}

/* TCP */

struct tcp {
    struct transport base;
    int fd;

    uint8_t in[CONTROL_BYTES];
    uint32_t in_have;        /* bytes received of the header and the body */
    struct record in_record; /* valid once the header is complete */
    struct slot *in_slot;    /* for data; NULL: use `in` */
    struct slots given;

    uint8_t control[CONTROLS_MEMORY];
    struct slots controls, data, sent;
    struct slot *out; /* partly sent; NULL: no record started */
    size_t out_sent;
    bool broken; /* cannot send; the last records of the peer can still be read */
    bool shut;   /* sending is shut down */
};

/* Send until the queues are empty, or the socket is full or broken. */
static void pump(struct tcp *tcp)
{
    while (!tcp->broken) {
        if (!tcp->out)
            tcp->out = slots_take(tcp->controls.first ? &tcp->controls : &tcp->data);
        if (!tcp->out)
            return;
        size_t length = RECORD_BYTES + (size_t)tcp->out->length;
        ssize_t sent = send(tcp->fd, tcp->out->bytes + tcp->out_sent,
                            length - tcp->out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        tcp->broken = sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK;
        tcp->out_sent += sent > 0 ? (size_t)sent : 0;
        if (tcp->out_sent < length)
            return;
        slots_put(transport_controls(&tcp->base, tcp->out) ? &tcp->base.control_free
                                                           : &tcp->sent, tcp->out);
        tcp->out = NULL;
        tcp->out_sent = 0;
    }
}

static int tcp_post(struct transport *base, struct slot *slot, struct error *error)
{
    (void)error;
    struct tcp *tcp = (struct tcp *)base;
    slots_put(transport_controls(base, slot) ? &tcp->controls : &tcp->data, slot);
    pump(tcp);
    return 0;
}

static int tcp_give(struct transport *base, struct slot *slot, struct error *error)
{
    (void)error;
    struct tcp *tcp = (struct tcp *)base;
    slots_push(&tcp->given, slot); /* reuse the slot still in the cache */
    return 0;
}

static int take_header(struct tcp *tcp, struct error *error)
{
    const char *why = record_get(&tcp->in_record, tcp->in, tcp->base.data_most);
    bool data = !why && tcp->in_record.type == RECORD_DATA;
    tcp->in_slot = data ? slots_take(&tcp->given) : NULL;
    if (data && !tcp->in_slot)
        why = "more data than it has credits for";
    if (why)
        return transport_refuse(&tcp->base, why, error);
    if (data) {
        memcpy(tcp->in_slot->bytes, tcp->in, RECORD_BYTES);
        tcp->in_slot->length = tcp->in_record.length;
    }
    return 0;
}

/* Return the length of the record, of its header only until the header is complete. */
static uint32_t in_whole(const struct tcp *tcp)
{
    return RECORD_BYTES + (tcp->in_have < RECORD_BYTES ? 0 : tcp->in_record.length);
}

/* Read a part of a record. 1: progress; 0: no data available; -1 with an error. */
static int read_some(struct tcp *tcp, struct error *error)
{
    bool header = tcp->in_have < RECORD_BYTES;
    uint8_t *into = header || !tcp->in_slot ? tcp->in : tcp->in_slot->bytes;
    ssize_t got;
    do
        got = recv(tcp->fd, into + tcp->in_have, in_whole(tcp) - tcp->in_have, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (got <= 0) {
        tcp->base.peer_left = true;
        tcp->base.peer_reset = got < 0;
        return fault(error, "%s left without a word%s%s%s", tcp->base.peer,
                     got ? ": " : "", got ? strerror(errno) : "",
                     tcp->in_have ? ", in the middle of a record" : "");
    }
    tcp->in_have += (uint32_t)got;
    tcp->base.heard_bytes += (uint64_t)got;
    tcp->base.in_part = true;
    bool has_header = header && tcp->in_have == RECORD_BYTES;
    return has_header && take_header(tcp, error) < 0 ? -1 : 1;
}

static int tcp_poll(struct transport *base, struct transport_event *event, struct error *error)
{
    struct tcp *tcp = (struct tcp *)base;
    pump(tcp);
    struct slot *slot = slots_take(&tcp->sent);
    if (slot) {
        *event = (struct transport_event){.kind = EVENT_SENT, .slot = slot};
        return 1;
    }
    while (tcp->in_have < in_whole(tcp)) {
        int moved = read_some(tcp, error);
        if (moved <= 0)
            return moved;
    }
    slot = tcp->in_slot;
    *event = (struct transport_event){
        .kind = slot ? EVENT_DATA : EVENT_RECORD,
        .record = tcp->in_record,
        .body = (slot ? slot->bytes : tcp->in) + RECORD_BYTES,
        .slot = slot,
    };
    tcp->in_have = 0;
    tcp->base.in_part = false;
    tcp->in_slot = NULL;
    return 1;
}

static bool sending(const struct tcp *tcp)
{
    return !tcp->broken && (tcp->out || tcp->controls.first || tcp->data.first);
}

static int tcp_fds(struct transport *base, struct pollfd *polled)
{
    struct tcp *tcp = (struct tcp *)base;
    *polled = (struct pollfd){tcp->fd, (short)(POLLIN | (sending(tcp) ? POLLOUT : 0)), 0};
    return 1;
}

/* Closing a socket with unread bytes resets the connection, and the peer may lose the last records
 * sent to it. So read everything until the peer has closed, too. */
static uint64_t tcp_left(struct transport *base)
{
    struct tcp *tcp = (struct tcp *)base;
    static uint8_t nowhere[65536];
    ssize_t got;
    int unheard = 0; /* bytes not acknowledged by the peer */
    pump(tcp);
    if (!sending(tcp) && !tcp->shut) {
        shutdown(tcp->fd, SHUT_WR);
        tcp->shut = true;
    }
    while ((got = recv(tcp->fd, nowhere, sizeof nowhere, MSG_DONTWAIT)) > 0)
        ;
    if (got == 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK))
        return 0;
    ioctl(tcp->fd, SIOCOUTQ, &unheard);
    uint64_t left = 1 + (uint64_t)unheard - tcp->out_sent;
    const struct slot *queued[] = {tcp->out, tcp->controls.first, tcp->data.first};
    for (int i = 0; i < 3; i++)
        for (const struct slot *slot = queued[i]; slot; slot = slot->next)
            left += RECORD_BYTES + (uint64_t)slot->length;
    return left;
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
    .post = tcp_post,
    .give = tcp_give,
    .poll = tcp_poll,
    .fds = tcp_fds,
    .left = tcp_left,
    .close = tcp_close,
};

struct transport *tcp_open(int fd, struct error *error)
{
    struct sockaddr_storage peer;
    const struct sockaddr *address = (struct sockaddr *)&peer;
    socklen_t length = sizeof peer;
    struct tcp *tcp = calloc(1, sizeof *tcp);
    int one = 1;
    if (!tcp || getpeername(fd, (struct sockaddr *)&peer, &length) < 0) {
        fault(error, "cannot use a connection: %m");
        free(tcp);
        close(fd);
        return NULL;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    tcp->fd = fd;
    transport_open(&tcp->base, &tcp_kind, tcp->control);
    if (peer.ss_family == AF_UNIX) { /* an agent, which forwards the stream */
        snprintf(tcp->base.peer, sizeof tcp->base.peer, "the SSH session");
        tcp->base.loopback = true;
    } else {
        transport_name(&tcp->base, address);
        tcp->base.loopback = net_is_loopback(address);
    }
    return &tcp->base;
}

struct transport *tcp_connect(const struct sockaddr *address, const struct sockaddr *from,
                              int64_t limit_ms, struct error *error)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool begun = fd >= 0 && (!from || bind(fd, from, net_length(from)) == 0) &&
                 (connect(fd, address, net_length(address)) == 0 || errno == EINPROGRESS);
    int code = begun ? ETIMEDOUT : errno;
    socklen_t error_length = sizeof code;
    struct pollfd polled = {fd, POLLOUT, 0};
    if (begun && signals_wait(&polled, 1, now_ms() + limit_ms, error) > 0)
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &error_length);
    if (!code)
        return tcp_open(fd, error);
    char name[80];
    net_name(address, name, sizeof name);
    fault(error, "%s: %s", name, net_advice(code));
    shut(&fd);
    return NULL;
}
