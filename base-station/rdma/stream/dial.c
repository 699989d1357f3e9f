/* Connecting a sender to its receiver: see dial.h. */
#include "dial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "bytes.h"
#include "link.h"
#include "net.h"
#include "ring.h"
#include "signals.h"

enum {
    LOOPBACK_BUFFERS = 3, /* few buffers stay in a core's cache */
    RDMA_LIMIT_MS = 2000,
    ADDRESS_LEAST_MS = 1000,
    PARTING_MS = 300,
    PROOF_LEAST_MS = 5000, /* also for an address reached late */
};

struct dialing {
    const struct options *options;
    const struct key *key;   /* not owned */
    struct meeting *meeting; /* the agreed parameters */
    int64_t limit_ms, end_ms;
    struct trouble unproven; /* reason why the last peer that answered was rejected */
};

/* Set the protection of the records on this connection. */
static int hello_protect(struct hello *mine, const struct options *options,
                         const struct transport *transport, struct trouble *trouble)
{
    if (options->protection != PROTECT_DEFAULT)
        mine->protection = (uint8_t)options->protection;
    else
        mine->protection = transport->loopback ? PROTECT_NOT : PROTECT_ENCRYPT;
    if (mine->protection != PROTECT_NOT || !transport->foreign || options->plain > 1)
        return 0;
    return troubled(trouble, EXIT_USAGE,
                    "--plain: %s is not in a private network, where anybody could read "
                    "and change the data: leave --plain out, or give it twice",
                    transport->peer);
}

static int answer(struct meeting *meeting, struct transport *transport,
                  struct trouble *trouble)
{
    bool answers = meeting->answers;
    meeting->answers = false;
    return answers && transport_say(transport, meeting->answer, trouble) < 0 ? -1 : 0;
}

int meet_begin(struct meeting *meeting, const struct options *options,
               const struct key *key, struct transport *transport,
               struct trouble *trouble)
{
    struct hello mine;
    int less = hello_of_options(&mine, options, transport->kind->number, trouble);
    if (less > 0)
        say("this user may pin %llu KiB for RDMA (ulimit -l): %u buffer%s of %u KiB",
            (unsigned long long)pinned_limit() >> 10, (unsigned)mine.credits,
            mine.credits == 1 ? "" : "s", (unsigned)mine.chunk >> 10);
    if (transport->loopback && options->sends && !options->credits)
        mine.credits = LOOPBACK_BUFFERS;
    if (less < 0 || hello_protect(&mine, options, transport, trouble) < 0 ||
        meeting_open(meeting, key, &mine, trouble) < 0)
        return -1;
    return answer(meeting, transport, trouble);
}

int meet_next(struct meeting *meeting, struct transport *transport,
              struct trouble *trouble)
{
    struct transport_event event;
    int got = transport->kind->poll(transport, &event, trouble);
    if (got <= 0 || event.kind != EVENT_RECORD)
        return got;
    int taken = meeting_take(meeting, &event.record, event.body, trouble);
    return answer(meeting, transport, trouble) < 0 || taken < 0 ? -1 : 1;
}

static int64_t left_ms(int64_t end_ms)
{
    int64_t left = end_ms - now_ms();
    return left > 0 ? left : 0;
}

/* Connect to one address: RDMA if allowed, otherwise TCP. */
static struct transport *dial_address(const struct options *options,
                                      const struct addrinfo *to,
                                      const struct sockaddr *from, int64_t limit_ms,
                                      struct trouble *trouble)
{
    char name[80];
    net_name(to->ai_addr, name, sizeof name);
    if (options->transport == WANT_AUTO && net_is_loopback(to->ai_addr)) {
        if (options->verbose)
            say("%s is loopback: TCP", name);
    } else if (options->transport != WANT_TCP) {
        struct trouble why = {0};
        int64_t most_ms = options->transport == WANT_AUTO ? RDMA_LIMIT_MS : limit_ms;
        struct transport *transport =
            rdma ? rdma->dial(to->ai_addr, from, options, MIN(limit_ms, most_ms), &why)
                 : NULL;
        if (transport)
            return transport;
        if (!rdma)
            fault(&why, RDMA_LEFT_OUT);
        if (signalled(&why))
            *trouble = why;
        else if (options->transport == WANT_RDMA)
            troubled(trouble, why.status, "%s over RDMA: %s", name, why.text);
        if (trouble->status)
            return NULL;
        if (options->verbose)
            say("%s: TCP, for over RDMA: %s", name, why.text);
    }
    return tcp_dial(to->ai_addr, from, limit_ms, trouble);
}

/* Return the deadline for the peer's proof; if there are other addresses to try, the
 * deadline for the hello, the first sign of an rdrecv. */
static int64_t stage_end_ms(const struct dialing *dialing, bool others)
{
    int64_t left = left_ms(dialing->end_ms), least = ADDRESS_LEAST_MS;
    if (others)
        left /= 2;
    else if (dialing->limit_ms > PROOF_LEAST_MS)
        least = PROOF_LEAST_MS;
    return now_ms() + MAX(left, least);
}

static int prove(struct transport *transport, const struct dialing *dialing, bool others,
                 struct trouble *trouble)
{
    struct meeting *meeting = dialing->meeting;
    int64_t hello_end_ms = stage_end_ms(dialing, others);
    int64_t proof_end_ms = stage_end_ms(dialing, false);
    while (meeting->stage != MEETING_OVER) {
        int64_t end_ms = meeting->stage == MEETING_HELLO ? hello_end_ms : proof_end_ms;
        int got = meet_next(meeting, transport, trouble);
        if (got < 0)
            return -1;
        struct pollfd polled[TRANSPORT_FDS];
        int count = got ? 0 : transport->kind->fds(transport, polled);
        if (!got && signals_wait(polled, count, end_ms, trouble) <= 0)
            return fault(trouble,
                         "%s took the connection and says nothing: is it an rdrecv, and "
                         "is it busy with another?", transport->peer);
    }
    return 0;
}

/* Close after a failed handshake. The receiver may have authenticated the sender already,
 * so send it an abort after a signal. */
static void leave(const struct dialing *dialing, struct transport *transport,
                  const struct trouble *why)
{
    const struct meeting *meeting = dialing->meeting;
    struct trouble ignored = {0};
    struct seals seals = {.data = {.cipher = NULL}};
    struct link link;
    if (!signalled(why) || meeting->stage != MEETING_PROOF) {
        transport_finish(transport, PARTING_MS);
        return;
    }
    link_open(&link, transport, dialing->options);
    if (meeting_protection(meeting) != PROTECT_NOT &&
        seals_open(&seals, meeting, &ignored) == 0)
        link.seals = &seals;
    link_abort(&link, why);
    seals_close(&seals);
}

/* Complete the handshake on a new connection, or close it. An error reported by a
 * receiver takes precedence over an error found with another peer. */
static struct transport *meet(struct dialing *dialing, struct transport *transport,
                              bool others, struct trouble *trouble)
{
    if (meet_begin(dialing->meeting, dialing->options, dialing->key, transport,
                   trouble) == 0 &&
        prove(transport, dialing, others, trouble) == 0)
        return transport;
    if (!transport->peer_left)
        leave(dialing, transport, trouble);
    transport_close(transport);
    if (!dialing->unproven.heard || trouble->heard)
        dialing->unproven = *trouble;
    return NULL;
}

/* Try all addresses of one host. `others` is the number of hosts still to try. */
static struct transport *dial_host(struct dialing *dialing, const struct addrinfo *found,
                                   const struct addrinfo *from, int others,
                                   struct trouble *last)
{
    const struct options *options = dialing->options;
    struct transport *transport = NULL;
    int left = others;
    for (const struct addrinfo *one = found; one; one = one->ai_next)
        left++;
    for (; found && !transport && !signalled(last); found = found->ai_next, left--) {
        int64_t share_ms = left_ms(dialing->end_ms) / left;
        if (from && from->ai_family != found->ai_family)
            continue;
        *last = (struct trouble){0};
        transport = dial_address(options, found, from ? from->ai_addr : NULL,
                                 MAX(share_ms, ADDRESS_LEAST_MS), last);
        if (transport)
            transport = meet(dialing, transport, left > 1, last);
        if (!transport && options->verbose)
            say("%s", last->text);
    }
    return transport;
}

/* HOST may be a comma-separated list. Try each until one address completes the
 * handshake. */
static struct transport *dial_all(struct dialing *dialing, struct trouble *last)
{
    const struct options *options = dialing->options;
    char *hosts = allocated(strdup(options->host)), *rest = hosts, *host;
    struct addrinfo *from = NULL;
    struct transport *transport = NULL;
    int left = 1;
    for (const char *at = hosts; (at = strchr(at, ',')); at++)
        left++;
    if (options->bind_to)
        from = net_resolve(options->bind_to, "0", left_ms(dialing->end_ms), last);
    bool may_begin = !last->status;
    for (; may_begin && !transport && !signalled(last) && (host = strsep(&rest, ","));
         left--) {
        *last = (struct trouble){0};
        struct addrinfo *found =
            net_resolve(host, options->port, left_ms(dialing->end_ms) / left, last);
        if (found)
            transport = dial_host(dialing, found, from, left - 1, last);
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

struct transport *dial(const struct options *options, const struct key *key,
                       struct meeting *meeting, struct trouble *trouble)
{
    int64_t limit_ms = options->connect_ms ? options->connect_ms : INT32_MAX;
    struct dialing dialing = {
        .options = options,
        .key = key,
        .meeting = meeting,
        .limit_ms = limit_ms,
        .end_ms = now_ms() + limit_ms,
    };
    struct transport *transport = NULL;
    if (options->socket_fd < 0)
        transport = dial_all(&dialing, trouble);
    else if (fcntl((int)options->socket_fd, F_SETFL, O_NONBLOCK) == 0 &&
             fcntl((int)options->socket_fd, F_SETFD, FD_CLOEXEC) == 0 &&
             (transport = tcp_open((int)options->socket_fd, trouble)))
        transport = meet(&dialing, transport, false, trouble);
    if (!transport && dialing.unproven.status && !signalled(trouble))
        *trouble = dialing.unproven;
    return transport;
}
