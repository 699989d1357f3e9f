/* Where strangers wait: see lobby.h. */
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
       EXPECTED_MS = 86400000 }; /* whose rdsend may wait for the hop before it */

static int announce(const struct lobby *lobby, struct trouble *trouble)
{
    int fd = lobby->options->announce_fd;
    if (fd < 0)
        return 0;
    const struct sockaddr *bound = (const struct sockaddr *)&lobby->bound;
    const char *transports = lobby->verbs && lobby->listen_fd >= 0 ? "rdma,tcp"
                             : lobby->verbs                        ? "rdma"
                                                                   : "tcp";
    char *addresses = net_addresses(bound, lobby->verbs ? verbs_has : NULL);
    bool whole = dprintf(fd, "port=%u transports=%s addresses=%s\n",
                         (unsigned)net_port(bound), transports, addresses) > 0;
    free(addresses);
    if (fd > STDERR_FILENO)
        close(fd);
    return whole ? 0
                 : fault(trouble, "cannot announce on descriptor %d: %m", fd);
}

/* NULL with a trouble; its errno is ENOMEM where too little may be pinned. */
static struct verbs_listener *listen_over_rdma(const struct lobby *lobby,
                                               struct trouble *why)
{
    struct hello mine = {.credits = 0};
    if (verbs_any_device() &&
        hello_of_options(&mine, lobby->options, TRANSPORT_RDMA, why) < 0) {
        errno = ENOMEM;
        return NULL;
    }
    return verbs_listen((const struct sockaddr *)&lobby->bound, lobby->options,
                        mine.credits, why);
}

/* The same number on TCP and RDMA: with port 0, one that is free in both. */
static int listen_on_both(struct lobby *lobby, struct trouble *trouble)
{
    const struct options *options = lobby->options;
    const char *ports = options->ports ? options->ports : options->port;
    bool fixed = strcmp(ports, "0") != 0;
    for (int left = PORT_TRIES;; left--) {
        struct trouble why = {0};
        lobby->listen_fd = net_listen(options->bind_to, ports, &lobby->bound,
                                      &lobby->bound_length, trouble);
        if (lobby->listen_fd < 0)
            return -1;
        bool rdma = options->transport == WANT_RDMA ||
                    (options->transport == WANT_AUTO && verbs_any_device());
        if (!rdma)
            return 0;
        lobby->verbs = listen_over_rdma(lobby, &why);
        if (lobby->verbs || options->transport == WANT_RDMA || left == 0 || fixed ||
            errno != EADDRINUSE) {
            if (!lobby->verbs && options->transport == WANT_RDMA)
                return troubled(trouble, why.status, "cannot listen over RDMA: %s",
                                why.text);
            if (!lobby->verbs && (options->verbose || errno == ENOMEM))
                say("TCP only, for over RDMA: %s", why.text);
            return 0;
        }
        close(lobby->listen_fd);
    }
}

int lobby_open(struct lobby *lobby, const struct options *options, const struct key *key,
               int signal_fd, struct trouble *trouble)
{
    *lobby = (struct lobby){
        .options = options, .key = key, .listen_fd = -1, .signal_fd = signal_fd};
    if (options->guests_fd >= 0)
        fcntl((int)options->guests_fd, F_SETFD, FD_CLOEXEC);
    if (listen_on_both(lobby, trouble) < 0)
        return -1;
    if (options->transport == WANT_RDMA) {
        close(lobby->listen_fd);
        lobby->listen_fd = -1;
    }
    if (options->verbose)
        say("waiting on port %u for %s",
            (unsigned)net_port((struct sockaddr *)&lobby->bound),
            !lobby->verbs          ? "TCP"
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
        if (lobby->verbs)
            transport = verbs_accept(lobby->verbs);
        int fd = transport ? -1 : fd_take((int)lobby->options->guests_fd);
        bool expected = fd >= 0;
        if (expected)
            transport = tcp_open(fd, &why);
        if (!transport && lobby->listen_fd >= 0) {
            fd = accept4(lobby->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            transport = fd >= 0 ? tcp_open(fd, &why) : NULL;
            if (fd < 0 && (errno == EMFILE || errno == ENFILE))
                poll(NULL, 0, FULL_MS); /* who knocks stays to be seen by poll */
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

/* Hears one guest out. Is it proven? */
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

struct watch {
    struct pollfd polled[5 + LOBBY_SEATS * TRANSPORT_FDS];
    int count;
    int64_t wait_ms;
};

static void watch(struct lobby *lobby, int out_fd, int64_t end_ms, struct watch *watch_)
{
    bool room = free_seat(lobby) != NULL;
    struct pollfd *polled = watch_->polled;
    polled[0] = (struct pollfd){lobby->signal_fd, POLLIN, 0};
    polled[1] = (struct pollfd){out_fd, 0, 0};
    polled[2] = (struct pollfd){room ? lobby->listen_fd : -1, POLLIN, 0};
    polled[3] = (struct pollfd){
        lobby->verbs && room ? verbs_listener_fd(lobby->verbs) : -1, POLLIN, 0};
    polled[4] = (struct pollfd){room ? (int)lobby->options->guests_fd : -1, POLLIN, 0};
    watch_->count = 5;
    int64_t until_ms = end_ms;
    for (int i = 0; i < LOBBY_SEATS; i++) {
        struct guest *guest = &lobby->guests[i];
        if (!guest->transport)
            continue;
        if (!until_ms || guest->until_ms < until_ms)
            until_ms = guest->until_ms;
        if (guest->leaving)
            continue;
        watch_->count +=
            guest->transport->kind->fds(guest->transport, polled + watch_->count);
    }
    watch_->wait_ms = until_ms ? until_ms - now_ms() : -1;
    if (until_ms && watch_->wait_ms < 0)
        watch_->wait_ms = 0;
}

static int check(const struct watch *watch_, int64_t end_ms, struct trouble *trouble)
{
    if (watch_->polled[0].revents && signals_take(trouble) < 0)
        return -1;
    if (watch_->polled[1].revents & (POLLERR | POLLHUP))
        return fault(trouble, "the reader of the output left");
    if (end_ms && now_ms() >= end_ms)
        return fault(trouble, "no sender came in time (--connect-timeout)");
    return 0;
}

struct transport *lobby_meet(struct lobby *lobby, int out_fd, struct meeting *meeting,
                             struct trouble *trouble)
{
    int64_t limit_ms = lobby->options->connect_ms;
    int64_t end_ms = limit_ms ? now_ms() + limit_ms : 0;
    for (;;) {
        struct watch watched = {.count = 0};
        watch(lobby, out_fd, end_ms, &watched);
        if (poll(watched.polled, (nfds_t)watched.count, (int)watched.wait_ms) < 0)
            continue;
        if (check(&watched, end_ms, trouble) < 0)
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
    if (lobby->verbs)
        verbs_listener_close(lobby->verbs);
    shut(&lobby->listen_fd);
    if (lobby->options && lobby->options->guests_fd >= 0)
        close((int)lobby->options->guests_fd);
    lobby->verbs = NULL;
}
