/* Connections before their proof: see connect.h. */
#include "connect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "descriptors.h"
#include "net.h"
#include "signals.h"

enum { PORT_TRIES = 16, LEAVE_MS = 500, FULL_MS = 100,
       EXPECTED_MS = 86400000 }; /* rdsend may wait for the hop before it */

static int announce(const struct pending_peers *pending, struct error *error)
{
    int fd = (int)pending->options->announce_fd;
    if (fd < 0)
        return 0;
    const struct sockaddr *bound = (const struct sockaddr *)&pending->bound;
    char *addresses = net_addresses(bound, pending->rdma_id ? rdma->has : NULL);
    bool whole = dprintf(fd, "port=%u transports=%s%s%s addresses=%s\n",
                         (unsigned)net_port(bound), pending->rdma_id ? "rdma" : "",
                         pending->rdma_id && pending->listen_fd >= 0 ? "," : "",
                         pending->listen_fd >= 0 ? "tcp" : "", addresses) > 0;
    free(addresses);
    if (fd > STDERR_FILENO)
        close(fd);
    return whole ? 0 : fault(error, "cannot announce on descriptor %d: %m", fd);
}

/* Listen on the same port number for TCP and RDMA. With port 0, find one that is free in both. */
static int listen_on_both(struct pending_peers *pending, struct error *error)
{
    const struct options *options = pending->options;
    const char *ports = options->ports ? options->ports : options->port;
    bool must = options->transport == WANT_RDMA;
    struct error why;
    for (int left = strcmp(ports, "0") == 0 ? PORT_TRIES : 0;; left--) {
        socklen_t length;
        why = (struct error){0};
        pending->listen_fd = net_listen(options->bind_to, ports, &pending->bound, &length, error);
        if (pending->listen_fd < 0)
            return -1;
        if (!must && (options->transport == WANT_TCP || !rdma || !rdma->any_device()))
            return 0;
        if (rdma)
            pending->rdma_id = rdma->listen((const struct sockaddr *)&pending->bound, options,
                                          &why);
        else
            fault(&why, RDMA_LEFT_OUT);
        if (must || pending->rdma_id || left <= 0 || errno != EADDRINUSE)
            break;
        shut(&pending->listen_fd);
    }
    if (must)
        shut(&pending->listen_fd);
    if (!pending->rdma_id && must)
        return fault_status(error, why.status, "cannot listen over RDMA: %s", why.text);
    if (!pending->rdma_id && options->verbose)
        say("TCP only, for over RDMA: %s", why.text);
    return 0;
}

int pending_open(struct pending_peers *pending, const struct options *options,
                 const struct key *key, struct error *error)
{
    *pending = (struct pending_peers){.options = options, .key = key, .listen_fd = -1};
    if (options->connections_fd >= 0)
        fcntl((int)options->connections_fd, F_SETFD, FD_CLOEXEC);
    if (listen_on_both(pending, error) < 0)
        return -1;
    if (options->verbose)
        say("waiting on port %u for %s",
            (unsigned)net_port((struct sockaddr *)&pending->bound),
            !pending->rdma_id        ? "TCP"
            : pending->listen_fd < 0 ? "RDMA"
                                   : "TCP and RDMA");
    return announce(pending, error);
}

static void peer_close(struct pending_peer *peer)
{
    transport_close(peer->transport);
    explicit_bzero(peer, sizeof *peer);
}

/* Close the peer after it has read why. */
static void peer_reject(const struct options *options, struct pending_peer *peer,
                        const struct error *why)
{
    bool ended = options->hop && peer->transport->peer_left; /* by its agent */
    if (!ended && !heard_in_chain(why, options))
        say("turned %s away: %s", peer->transport->peer, why->text);
    peer->leaving = true;
    peer->until_ms = now_ms() + LEAVE_MS;
    if (peer->transport->peer_left)
        peer_close(peer);
}

static int64_t proof_limit_ms(const struct options *options)
{
    return MAX(options->timeout_ms / 2, PENDING_LEAST_MS);
}

/* Accept the next connection. NULL: there is none. `expected`: an agent passed it on. */
static struct transport *next_connection(struct pending_peers *pending, bool *expected)
{
    struct error ignored = {0};
    struct transport *transport = NULL;
    char dot[2];
    if (pending->rdma_id)
        transport = rdma->accept(pending->rdma_id, pending->options);
    int fd = transport ? -1 : fd_take((int)pending->options->connections_fd, dot, sizeof dot);
    *expected = fd >= 0;
    if (!transport && fd < 0 && pending->listen_fd >= 0) {
        fd = accept4(pending->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE))
            poll(NULL, 0, FULL_MS); /* poll still reports the connection */
    }
    return fd >= 0 ? tcp_open(fd, &ignored) : transport;
}

static void accept_all(struct pending_peers *pending)
{
    for (int i = 0; i < PENDING_MOST; i++) {
        struct pending_peer *peer = &pending->peers[i];
        struct error why = {0};
        bool expected;
        if (peer->transport)
            continue;
        if (!(peer->transport = next_connection(pending, &expected)))
            return;
        peer->until_ms = now_ms() + (expected ? EXPECTED_MS : proof_limit_ms(pending->options));
        if (handshake_begin(&peer->handshake, pending->options, pending->key, peer->transport,
                            &why) == 0)
            continue;
        say("turned %s away: %s", peer->transport->peer, why.text);
        peer_close(peer);
    }
}

/* Process all records of one peer. Return true once it is authenticated. */
static bool peer_proves(const struct options *options, struct pending_peer *peer)
{
    struct transport *transport = peer->transport;
    struct error why = {0};
    int got = 0;
    while (!peer->leaving && (got = handshake_next(&peer->handshake, transport, &why)) > 0)
        if (peer->handshake.stage == HANDSHAKE_OVER)
            return true;
    if (got < 0) {
        peer_reject(options, peer, &why);
    } else if (now_ms() >= peer->until_ms) {
        if (!peer->leaving)
            say("turned %s away: no proof within %g s (--timeout)", transport->peer,
                (double)proof_limit_ms(options) / 1000);
        peer_close(peer);
    }
    return false;
}

/* Fill in the descriptors to poll, `out_fd` first. Return their number. `until_ms` becomes the
 * deadline of a peer if that is earlier. */
static int watch(const struct pending_peers *pending, int out_fd, struct pollfd *polled,
                 int64_t *until_ms)
{
    int count = 4;
    bool room = false;
    for (int i = 0; i < PENDING_MOST; i++) {
        const struct pending_peer *peer = &pending->peers[i];
        room |= !peer->transport;
        if (peer->transport && peer->until_ms < *until_ms)
            *until_ms = peer->until_ms;
        if (peer->transport && !peer->leaving)
            count += peer->transport->kind->fds(peer->transport, polled + count);
    }
    polled[0] = (struct pollfd){out_fd, 0, 0};
    polled[1] = (struct pollfd){room ? pending->listen_fd : -1, POLLIN, 0};
    polled[2] = (struct pollfd){
        pending->rdma_id && room ? rdma->fd(pending->rdma_id) : -1, POLLIN, 0};
    polled[3] = (struct pollfd){room ? (int)pending->options->connections_fd : -1, POLLIN, 0};
    return count;
}

_Static_assert(4 + PENDING_MOST * TRANSPORT_FDS <= SIGNALS_POLLED_MOST, "one wait for all");

struct transport *pending_accept(struct pending_peers *pending, int out_fd,
                                 struct handshake *handshake, struct error *error)
{
    int64_t limit_ms = pending->options->connect_ms;
    int64_t end_ms = limit_ms ? now_ms() + limit_ms : INT64_MAX;
    for (;;) {
        struct pollfd polled[SIGNALS_POLLED_MOST];
        int64_t until_ms = end_ms;
        int count = watch(pending, out_fd, polled, &until_ms);
        if (signals_wait(polled, count, until_ms, error) < 0)
            return NULL;
        if (polled[0].revents & (POLLERR | POLLHUP))
            fault(error, "the reader of the output left");
        else if (now_ms() >= end_ms)
            fault(error, "no sender came to port %u within %g s: is rdsend started, and does a "
                  "firewall drop the port? (--connect-timeout)",
                  (unsigned)net_port((struct sockaddr *)&pending->bound), (double)limit_ms / 1000);
        if (error->status)
            return NULL;
        accept_all(pending);
        for (int i = 0; i < PENDING_MOST; i++) {
            struct pending_peer *peer = &pending->peers[i];
            if (!peer->transport || !peer_proves(pending->options, peer))
                continue;
            struct transport *transport = peer->transport;
            *handshake = peer->handshake;
            explicit_bzero(peer, sizeof *peer);
            return transport;
        }
    }
}

void pending_close(struct pending_peers *pending)
{
    for (int i = 0; i < PENDING_MOST; i++)
        peer_close(&pending->peers[i]);
    if (pending->rdma_id)
        rdma->close(pending->rdma_id);
    shut(&pending->listen_fd);
    if (pending->options && pending->options->connections_fd >= 0)
        close((int)pending->options->connections_fd);
    pending->rdma_id = NULL;
}
