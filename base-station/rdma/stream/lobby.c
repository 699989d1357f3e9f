/* Unauthenticated connections: see lobby.h. */
#include "lobby.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "dial.h"
#include "net.h"
#include "signals.h"

enum { PORT_TRIES = 16, LEAVE_MS = 500, FULL_MS = 100,
       EXPECTED_MS = 86400000 }; /* rdsend may wait for the hop before it */

static int announce(const struct lobby *lobby, struct trouble *trouble)
{
    int fd = (int)lobby->options->announce_fd;
    if (fd < 0)
        return 0;
    const struct sockaddr *bound = (const struct sockaddr *)&lobby->bound;
    char *addresses = net_addresses(bound, lobby->rdma_id ? rdma->has : NULL);
    bool whole = dprintf(fd, "port=%u transports=%s%s%s addresses=%s\n",
                         (unsigned)net_port(bound), lobby->rdma_id ? "rdma" : "",
                         lobby->rdma_id && lobby->listen_fd >= 0 ? "," : "",
                         lobby->listen_fd >= 0 ? "tcp" : "", addresses) > 0;
    free(addresses);
    if (fd > STDERR_FILENO)
        close(fd);
    return whole ? 0
                 : fault(trouble, "cannot announce on descriptor %d: %m", fd);
}

/* Listen on the same port number for TCP and RDMA. With port 0, find one that is free in
 * both. */
static int listen_on_both(struct lobby *lobby, struct trouble *trouble)
{
    const struct options *options = lobby->options;
    const char *ports = options->ports ? options->ports : options->port;
    bool must = options->transport == WANT_RDMA;
    struct trouble why;
    for (int left = strcmp(ports, "0") == 0 ? PORT_TRIES : 0;; left--) {
        socklen_t length;
        why = (struct trouble){0};
        lobby->listen_fd = net_listen(options->bind_to, ports, &lobby->bound, &length,
                                      trouble);
        if (lobby->listen_fd < 0)
            return -1;
        if (!must && (options->transport == WANT_TCP || !rdma || !rdma->any_device()))
            return 0;
        if (rdma)
            lobby->rdma_id = rdma->listen((const struct sockaddr *)&lobby->bound, options,
                                          &why);
        else
            fault(&why, RDMA_LEFT_OUT);
        if (must || lobby->rdma_id || left <= 0 || errno != EADDRINUSE)
            break;
        shut(&lobby->listen_fd);
    }
    if (must)
        shut(&lobby->listen_fd);
    if (!lobby->rdma_id && must)
        return troubled(trouble, why.status, "cannot listen over RDMA: %s", why.text);
    if (!lobby->rdma_id && options->verbose)
        say("TCP only, for over RDMA: %s", why.text);
    return 0;
}

int lobby_open(struct lobby *lobby, const struct options *options, const struct key *key,
               struct trouble *trouble)
{
    *lobby = (struct lobby){.options = options, .key = key, .listen_fd = -1};
    if (options->guests_fd >= 0)
        fcntl((int)options->guests_fd, F_SETFD, FD_CLOEXEC);
    if (listen_on_both(lobby, trouble) < 0)
        return -1;
    if (options->verbose)
        say("waiting on port %u for %s",
            (unsigned)net_port((struct sockaddr *)&lobby->bound),
            !lobby->rdma_id        ? "TCP"
            : lobby->listen_fd < 0 ? "RDMA"
                                   : "TCP and RDMA");
    return announce(lobby, trouble);
}

static void guest_close(struct guest *guest)
{
    transport_close(guest->transport);
    *guest = (struct guest){.transport = NULL};
}

static struct guest *free_seat(struct lobby *lobby)
{
    for (int i = 0; i < LOBBY_SEATS; i++)
        if (!lobby->guests[i].transport)
            return &lobby->guests[i];
    return NULL;
}

static void seat(struct lobby *lobby, struct guest *guest, struct transport *transport)
{
    struct trouble why = {0};
    guest->transport = transport;
    guest->until_ms = now_ms() + LOBBY_LIMIT_MS;
    if (meet_begin(&guest->meeting, lobby->options, lobby->key, transport, &why) == 0)
        return;
    say("turned %s away: %s", transport->peer, why.text);
    guest_close(guest);
}

static void let_in(struct lobby *lobby)
{
    struct guest *guest;
    while ((guest = free_seat(lobby))) {
        struct trouble why = {0};
        struct transport *transport = NULL;
        char dot[2];
        if (lobby->rdma_id)
            transport = rdma->accept(lobby->rdma_id, lobby->options);
        int fd = transport ? -1 : fd_take((int)lobby->options->guests_fd, dot, sizeof dot);
        bool expected = fd >= 0;
        if (expected)
            transport = tcp_open(fd, &why);
        if (!transport && lobby->listen_fd >= 0) {
            fd = accept4(lobby->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            transport = fd >= 0 ? tcp_open(fd, &why) : NULL;
            if (fd < 0 && (errno == EMFILE || errno == ENFILE))
                poll(NULL, 0, FULL_MS); /* poll still reports the connection */
        }
        if (!transport)
            return;
        seat(lobby, guest, transport);
        if (expected && guest->transport)
            guest->until_ms = now_ms() + EXPECTED_MS;
    }
}

static void turn_away(const struct lobby *lobby, struct guest *guest,
                      const struct trouble *why)
{
    bool ended = lobby->options->hop && guest->transport->peer_left; /* by its leash */
    if (!ended && !heard_in_chain(why, lobby->options))
        say("turned %s away: %s", guest->transport->peer, why->text);
    if (guest->transport->peer_left) {
        guest_close(guest);
        return;
    }
    guest->leaving = true;
    guest->until_ms = now_ms() + LEAVE_MS;
}

/* Process all records of one guest. Return true once it is authenticated. */
static bool attend(const struct lobby *lobby, struct guest *guest)
{
    struct transport *transport = guest->transport;
    struct trouble why = {0};
    int got = 0;
    while (!guest->leaving && (got = meet_next(&guest->meeting, transport, &why)) > 0)
        if (guest->meeting.stage == MEETING_OVER)
            return true;
    if (got < 0) {
        turn_away(lobby, guest, &why);
    } else if (now_ms() >= guest->until_ms) {
        if (!guest->leaving)
            say("turned %s away: no proof within %d s", transport->peer,
                LOBBY_LIMIT_MS / 1000);
        guest_close(guest);
    }
    return false;
}

/* Fill in the descriptors to poll, `out_fd` first. Return their number. `until_ms`
 * becomes the deadline of a guest if that is earlier. */
static int watch(const struct lobby *lobby, int out_fd, struct pollfd *polled,
                 int64_t *until_ms)
{
    int count = 4;
    bool room = false;
    for (int i = 0; i < LOBBY_SEATS; i++) {
        const struct guest *guest = &lobby->guests[i];
        room |= !guest->transport;
        if (guest->transport && guest->until_ms < *until_ms)
            *until_ms = guest->until_ms;
        if (guest->transport && !guest->leaving)
            count += guest->transport->kind->fds(guest->transport, polled + count);
    }
    polled[0] = (struct pollfd){out_fd, 0, 0};
    polled[1] = (struct pollfd){room ? lobby->listen_fd : -1, POLLIN, 0};
    polled[2] = (struct pollfd){
        lobby->rdma_id && room ? rdma->fd(lobby->rdma_id) : -1, POLLIN, 0};
    polled[3] = (struct pollfd){room ? (int)lobby->options->guests_fd : -1, POLLIN, 0};
    return count;
}

_Static_assert(4 + LOBBY_SEATS * TRANSPORT_FDS <= SIGNALS_POLLED_MOST, "one wait for all");

struct transport *lobby_meet(struct lobby *lobby, int out_fd, struct meeting *meeting,
                             struct trouble *trouble)
{
    int64_t limit_ms = lobby->options->connect_ms;
    int64_t end_ms = limit_ms ? now_ms() + limit_ms : INT64_MAX;
    for (;;) {
        struct pollfd polled[SIGNALS_POLLED_MOST];
        int64_t until_ms = end_ms;
        int count = watch(lobby, out_fd, polled, &until_ms);
        if (signals_wait(polled, count, until_ms, trouble) < 0)
            return NULL;
        if (polled[0].revents & (POLLERR | POLLHUP))
            fault(trouble, "the reader of the output left");
        else if (now_ms() >= end_ms)
            fault(trouble, "no sender came in time (--connect-timeout)");
        if (trouble->status)
            return NULL;
        let_in(lobby);
        for (int i = 0; i < LOBBY_SEATS; i++) {
            struct guest *guest = &lobby->guests[i];
            if (!guest->transport || !attend(lobby, guest))
                continue;
            struct transport *transport = guest->transport;
            *meeting = guest->meeting;
            guest->transport = NULL;
            return transport;
        }
    }
}

void lobby_close(struct lobby *lobby)
{
    for (int i = 0; i < LOBBY_SEATS; i++)
        guest_close(&lobby->guests[i]);
    if (lobby->rdma_id)
        rdma->close(lobby->rdma_id);
    shut(&lobby->listen_fd);
    if (lobby->options && lobby->options->guests_fd >= 0)
        close((int)lobby->options->guests_fd);
    lobby->rdma_id = NULL;
}
