/* Connecting a sender to its receiver: see connect.h. */
#include "connect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "bytes.h"
#include "net.h"
#include "signals.h"

enum {
    LOOPBACK_BUFFERS = 3, /* few buffers stay in a core's cache */
    RDMA_LIMIT_MS = 2000,
    ADDRESS_LEAST_MS = 1000,
    PARTING_MS = 300,
    PROOF_LEAST_MS = 5000, /* also for an address reached late */
};

struct connecting {
    const struct options *options;
    const struct key *key;   /* not owned */
    struct handshake *handshake; /* the agreed parameters */
    int64_t limit_ms, end_ms;
    struct error unproven; /* reason why the last peer that answered was rejected */
};

/* Set the protection of the records on this connection. */
static int hello_protect(struct hello *mine, const struct options *options,
                         const struct transport *transport, struct error *error)
{
    if (options->protection != PROTECT_DEFAULT)
        mine->protection = (uint8_t)options->protection;
    else
        mine->protection = transport->loopback ? PROTECT_NOT : PROTECT_ENCRYPT;
    if (mine->protection != PROTECT_NOT || !transport->foreign || options->plain > 1)
        return 0;
    return fault_status(error, EXIT_USAGE,
                        "--plain: %s is not in a private network, where anybody could read and "
                        "change the data: leave --plain out, or give it twice", transport->peer);
}

static int answer(struct handshake *handshake, struct transport *transport, struct error *error)
{
    bool answers = handshake->answers;
    handshake->answers = false;
    return answers && transport_say(transport, handshake->answer, error) < 0 ? -1 : 0;
}

int handshake_begin(struct handshake *handshake, const struct options *options,
                    const struct key *key, struct transport *transport, struct error *error)
{
    struct hello mine;
    int less = hello_of_options(&mine, options, transport->kind->number, error);
    if (less > 0)
        say("this user may pin %llu KiB for RDMA (ulimit -l): %u buffer%s of %u KiB",
            (unsigned long long)pinned_limit() >> 10, (unsigned)mine.credits,
            mine.credits == 1 ? "" : "s", (unsigned)mine.chunk >> 10);
    if (transport->loopback && options->sends && !options->credits)
        mine.credits = LOOPBACK_BUFFERS;
    if (less < 0 || hello_protect(&mine, options, transport, error) < 0 ||
        handshake_open(handshake, key, &mine, error) < 0)
        return -1;
    return answer(handshake, transport, error);
}

int handshake_next(struct handshake *handshake, struct transport *transport, struct error *error)
{
    struct transport_event event;
    int got = transport->kind->poll(transport, &event, error);
    if (got <= 0 || event.kind != EVENT_RECORD)
        return got;
    int taken = handshake_take(handshake, &event.record, event.body, error);
    return answer(handshake, transport, error) < 0 || taken < 0 ? -1 : 1;
}

static int64_t left_ms(int64_t end_ms)
{
    int64_t left = end_ms - now_ms();
    return left > 0 ? left : 0;
}

/* Connect to one address: RDMA if allowed, otherwise TCP. */
static struct transport *connect_address(const struct options *options, const struct addrinfo *to,
                                         const struct sockaddr *from, int64_t limit_ms,
                                         struct error *error)
{
    char name[80];
    net_name(to->ai_addr, name, sizeof name);
    if (options->transport == WANT_AUTO && net_is_loopback(to->ai_addr)) {
        if (options->verbose)
            say("%s is loopback: TCP", name);
    } else if (options->transport != WANT_TCP) {
        struct error why = {0};
        int64_t most_ms = options->transport == WANT_AUTO ? RDMA_LIMIT_MS : limit_ms;
        struct transport *transport =
            rdma ? rdma->connect(to->ai_addr, from, options, MIN(limit_ms, most_ms), &why)
                 : NULL;
        if (transport)
            return transport;
        if (!rdma)
            fault(&why, RDMA_LEFT_OUT);
        if (signalled(&why))
            *error = why;
        else if (options->transport == WANT_RDMA)
            fault_status(error, why.status, "%s over RDMA: %s", name, why.text);
        if (error->status)
            return NULL;
        if (options->verbose)
            say("%s: TCP, for over RDMA: %s", name, why.text);
    }
    return tcp_connect(to->ai_addr, from, limit_ms, error);
}

/* Return the deadline for the peer's proof; if there are other addresses to try, the deadline for
 * the hello, the first sign of an rdrecv. */
static int64_t stage_end_ms(const struct connecting *connecting, bool others)
{
    int64_t left = left_ms(connecting->end_ms), least = ADDRESS_LEAST_MS;
    if (others)
        left /= 2;
    else if (connecting->limit_ms > PROOF_LEAST_MS)
        least = PROOF_LEAST_MS;
    return now_ms() + MAX(left, least);
}

static int prove(struct transport *transport, const struct connecting *connecting, bool others,
                 struct error *error)
{
    struct handshake *handshake = connecting->handshake;
    int64_t hello_end_ms = stage_end_ms(connecting, others);
    int64_t proof_end_ms = stage_end_ms(connecting, false);
    while (handshake->stage != HANDSHAKE_OVER) {
        int64_t end_ms = handshake->stage == HANDSHAKE_HELLO ? hello_end_ms : proof_end_ms;
        int got = handshake_next(handshake, transport, error);
        if (got < 0)
            return -1;
        struct pollfd polled[TRANSPORT_FDS];
        int count = got ? 0 : transport->kind->fds(transport, polled);
        if (!got && signals_wait(polled, count, end_ms, error) <= 0)
            return fault(error, "%s took the connection and says nothing: is it an rdrecv, and "
                         "is it busy with another?", transport->peer);
    }
    return 0;
}

/* Complete the handshake on a new connection, or close it. An error reported by a receiver takes
 * precedence over an error found with another peer. */
static struct transport *authenticate(struct connecting *connecting, struct transport *transport,
                              bool others, struct error *error)
{
    if (handshake_begin(connecting->handshake, connecting->options, connecting->key, transport,
                        error) == 0 && prove(transport, connecting, others, error) == 0)
        return transport;
    if (!transport->peer_left)
        transport_finish(transport, PARTING_MS); /* the peer reads why */
    transport_close(transport);
    if (!connecting->unproven.heard || error->heard)
        connecting->unproven = *error;
    return NULL;
}

/* Try all addresses of one host. `others` is the number of hosts still to try. */
static struct transport *connect_host(struct connecting *connecting, const struct addrinfo *found,
                                      const struct addrinfo *from, int others, struct error *last)
{
    const struct options *options = connecting->options;
    struct transport *transport = NULL;
    int left = others;
    for (const struct addrinfo *one = found; one; one = one->ai_next)
        left++;
    for (; found && !transport && !signalled(last); found = found->ai_next, left--) {
        int64_t share_ms = left_ms(connecting->end_ms) / left;
        if (from && from->ai_family != found->ai_family)
            continue;
        *last = (struct error){0};
        transport = connect_address(options, found, from ? from->ai_addr : NULL,
                                 MAX(share_ms, ADDRESS_LEAST_MS), last);
        if (transport)
            transport = authenticate(connecting, transport, left > 1, last);
        if (!transport && options->verbose)
            say("%s", last->text);
    }
    return transport;
}

/* HOST may be a comma-separated list. Try each until one address completes the handshake. */
static struct transport *connect_all(struct connecting *connecting, struct error *last)
{
    const struct options *options = connecting->options;
    char *hosts = allocated(strdup(options->host)), *rest = hosts, *host;
    struct addrinfo *from = NULL;
    struct transport *transport = NULL;
    int left = 1;
    for (const char *at = hosts; (at = strchr(at, ',')); at++)
        left++;
    if (options->bind_to)
        from = net_resolve(options->bind_to, "0", left_ms(connecting->end_ms), last);
    bool may_begin = !last->status;
    for (; may_begin && !transport && !signalled(last) && (host = strsep(&rest, ",")); left--) {
        *last = (struct error){0};
        struct addrinfo *found =
            net_resolve(host, options->port, left_ms(connecting->end_ms) / left, last);
        if (found)
            transport = connect_host(connecting, found, from, left - 1, last);
        if (!transport && !last->status)
            fault(last, "%s has no address of the family of --bind", host);
        if (found)
            freeaddrinfo(found);
    }
    if (from)
        freeaddrinfo(from);
    free(hosts);
    return transport;
}

struct transport *connect_peer(const struct options *options, const struct key *key,
                       struct handshake *handshake, struct error *error)
{
    int64_t limit_ms = options->connect_ms ? options->connect_ms : INT32_MAX;
    struct connecting connecting = {
        .options = options,
        .key = key,
        .handshake = handshake,
        .limit_ms = limit_ms,
        .end_ms = now_ms() + limit_ms,
    };
    struct transport *transport = NULL;
    if (options->socket_fd < 0)
        transport = connect_all(&connecting, error);
    else if (fcntl(options->socket_fd, F_SETFL, O_NONBLOCK) == 0 &&
             fcntl(options->socket_fd, F_SETFD, FD_CLOEXEC) == 0 &&
             (transport = tcp_open(options->socket_fd, error)))
        transport = authenticate(&connecting, transport, false, error);
    if (!transport && connecting.unproven.status && !signalled(error))
        *error = connecting.unproven;
    return transport;
}
