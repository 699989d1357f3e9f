/* Data path of a hop through a firewall, at one leash: see way.h. */
#include "way.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "descriptors.h"
#include "net.h"
#include "trouble.h"

enum { TRIES_MOST = 32, TOKEN_MS = 1000 };

void way_init(struct way *way)
{
    *way = (struct way){.guests_fd = -1, .where_fd = -1, .listener_fd = -1,
                        .socket_fd = -1, .back_fd = -1};
    for (int i = 0; i < LEASH_HOPS; i++)
        way->tunnel[i].fd = -1;
}

void way_close(struct way *way)
{
    shut(&way->guests_fd);
    shut(&way->where_fd);
    shut(&way->listener_fd);
    shut(&way->socket_fd);
    shut(&way->back_fd);
    for (int i = 0; i < LEASH_HOPS; i++) {
        shut(&way->tunnel[i].fd);
        bytes_close(&way->tunnel[i].late);
    }
}

/* Start connecting to each address. */
static nfds_t begin(struct pollfd *tries, const char *addresses, const char *port,
                    int64_t end_ms)
{
    nfds_t count = 0;
    char *hosts = allocated(strdup(addresses)), *rest = hosts, *host;
    while ((host = strsep(&rest, ",")) && now_ms() < end_ms) {
        struct trouble why = {0};
        struct addrinfo *found = net_resolve(host, port, end_ms - now_ms(), &why);
        for (struct addrinfo *one = found; one && count < TRIES_MOST; one = one->ai_next) {
            int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            if (fd >= 0 && connect(fd, one->ai_addr, one->ai_addrlen) < 0 &&
                errno != EINPROGRESS)
                shut(&fd);
            tries[count++] = (struct pollfd){fd, POLLOUT, 0};
        }
        if (found)
            freeaddrinfo(found);
    }
    free(hosts);
    return count;
}

/* True if connected. Closes a failed socket. */
static bool connected(struct pollfd *try)
{
    int error = 0;
    socklen_t length = sizeof error;
    if (try->fd < 0 || !try->revents)
        return false;
    getsockopt(try->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error)
        shut(&try->fd);
    return !error;
}

/*
 * Connect to these addresses and return the first connection made in time, or -1. A hang-up on
 * `stop_fd` ends the wait.
 */
static int way_reach(const char *addresses, const char *port, int stop_fd)
{
    struct pollfd polled[TRIES_MOST + 1];
    int64_t end_ms = now_ms() + WAY_REACH_MS, left_ms;
    nfds_t count = begin(polled, addresses, port, end_ms), left = count;
    int found = -1;
    polled[count] = (struct pollfd){stop_fd, 0, 0}; /* POLLHUP: rdpipe left */
    while (found < 0 && left && !polled[count].revents &&
           (left_ms = end_ms - now_ms()) > 0 &&
           (poll(polled, count + 1, (int)left_ms) >= 0 || errno == EINTR)) {
        left = 0;
        for (nfds_t i = 0; i < count && found < 0; i++) {
            if (connected(&polled[i])) {
                found = polled[i].fd;
                polled[i].fd = -1;
            }
            left += polled[i].fd >= 0;
        }
    }
    for (nfds_t i = 0; i < count; i++)
        shut(&polled[i].fd);
    return found;
}

static int await(struct way *way, const char *ports)
{
    struct sockaddr_storage bound;
    socklen_t length;
    struct trouble why = {0};
    struct bytes line = {0};
    way->listener_fd = net_listen(NULL, ports, &bound, &length, &why);
    if (way->listener_fd < 0)
        return -1;
    char *addresses = net_addresses((struct sockaddr *)&bound, NULL);
    bytes_format(&line, "port=%u addresses=%s",
                 (unsigned)net_port((struct sockaddr *)&bound), addresses);
    leash_say(LEASH_AWAIT, LEASH_HOP_OUT, line.data, line.length + 1);
    bytes_close(&line);
    free(addresses);
    return 0;
}

/* True if the dialing peer has sent the token, which it does at once. */
static bool is_expected(int fd, const char *token)
{
    char said[LEASH_TOKEN];
    struct pollfd polled = {fd, POLLIN, 0};
    return poll(&polled, 1, TOKEN_MS) == 1 &&
           recv(fd, said, sizeof said, 0) == LEASH_TOKEN &&
           memcmp(said, token, LEASH_TOKEN) == 0;
}

/* Return the tool's end of a new tunnel, or -1 with errno. */
static int tunnel_open(struct way *way, enum leash_hop hop)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    way->tunnel[hop] = (struct tunnel){.fd = ends[1], .may = LEASH_WINDOW};
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    return ends[0];
}

void way_back(struct way *way, bool says)
{
    struct tunnel *tunnel = &way->tunnel[LEASH_HOP_BACK];
    int ends[2];
    if (tunnel->fd >= 0 || tunnel->ended || pipe2(ends, O_CLOEXEC) < 0)
        return;
    way->back_fd = ends[says];
    *tunnel = (struct tunnel){.fd = ends[!says], .may = LEASH_WINDOW, .ended = !says};
    fcntl(tunnel->fd, F_SETFL, O_NONBLOCK);
}

int way_find(struct way *way, const struct leash_work *work, int stop_fd)
{
    if (!*work->key_out || work->way == LEASH_SURE || way->socket_fd >= 0)
        return 1;
    if (work->way == LEASH_STRAIGHT) {
        int fd = way_reach(work->addresses, work->port, stop_fd), found = fd < 0 ? -1 : 1;
        shut(&fd);
        return found;
    }
    if (work->way == LEASH_THROUGH_SSH) {
        shut(&way->listener_fd);
        way->socket_fd = tunnel_open(way, LEASH_HOP_OUT);
        return way->socket_fd < 0 ? -1 : 1;
    }
    if (way->listener_fd < 0)
        return await(way, work->ports);
    way->socket_fd = accept4(way->listener_fd, NULL, NULL, SOCK_CLOEXEC);
    if (way->socket_fd < 0 || !is_expected(way->socket_fd, work->token)) {
        shut(&way->socket_fd);
        return 0;
    }
    shut(&way->listener_fd);
    return 1;
}

static int take_tunnel(struct way *way)
{
    int fd = tunnel_open(way, LEASH_HOP_IN);
    return fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -1 : fd;
}

int way_dial(struct way *way, const struct words *to, int stop_fd)
{
    bool dials = to->count == 3;
    int fd = dials ? way_reach(to->word[2], to->word[1], stop_fd) : take_tunnel(way);
    if (fd >= 0 && dials &&
        send(fd, to->word[0], LEASH_TOKEN, MSG_NOSIGNAL) != LEASH_TOKEN)
        shut(&fd);
    int result = fd < 0 ? -1 : fd_send(way->guests_fd, fd, ".");
    shut(&fd);
    return result;
}

void tunnels_watched(const struct way *way, struct pollfd polled[LEASH_HOPS])
{
    for (int i = 0; i < LEASH_HOPS; i++) {
        const struct tunnel *tunnel = &way->tunnel[i];
        bool reads = tunnel->may && !tunnel->ended;
        short events = (short)((reads ? POLLIN : 0) | (tunnel->late.length ? POLLOUT : 0));
        polled[i] = (struct pollfd){events ? tunnel->fd : -1, events, 0};
    }
}

int tunnel_take(struct way *way, const struct leash_said *frame)
{
    struct tunnel *tunnel = &way->tunnel[frame->hop];
    if (frame->verb == LEASH_TOOK) {
        tunnel->may += leash_number(frame, LEASH_WINDOW + 1);
        return tunnel->may > LEASH_WINDOW ? -1 : 0;
    }
    if (tunnel->fd < 0) /* its tool has ended */
        return 0;
    tunnel->ending |= !frame->length;
    if (tunnel->late.length + frame->length > LEASH_WINDOW)
        return -1;
    bytes_add(&tunnel->late, frame->body, frame->length);
    return 0;
}

static void give(struct tunnel *tunnel, enum leash_hop hop)
{
    ssize_t sent = 1;
    char took[24];
    while (tunnel->late.length && sent > 0) {
        sent = write(tunnel->fd, tunnel->late.data, tunnel->late.length);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            sent = (ssize_t)tunnel->late.length; /* the reader has closed it */
        bytes_drop(&tunnel->late, sent > 0 ? (size_t)sent : 0);
        tunnel->took += sent > 0 ? (size_t)sent : 0;
    }
    if (tunnel->took >= LEASH_WINDOW / 4 || (tunnel->took && !tunnel->late.length)) {
        int length = snprintf(took, sizeof took, "%zu", tunnel->took);
        leash_say(LEASH_TOOK, hop, took, (size_t)length + 1);
        tunnel->took = 0;
    }
    if (tunnel->ending && !tunnel->late.length) {
        tunnel->ending = false;
        if (shutdown(tunnel->fd, SHUT_WR) < 0) /* a pipe */
            shut(&tunnel->fd);
    }
}

static void pump(struct tunnel *tunnel, enum leash_hop hop, bool end)
{
    static char piece[LEASH_FRAME];
    if (tunnel->fd < 0)
        return;
    give(tunnel, hop);
    while ((tunnel->may || end) && !tunnel->ended) {
        size_t most = end || tunnel->may > sizeof piece ? sizeof piece : tunnel->may;
        ssize_t got = read(tunnel->fd, piece, most);
        if (got < 0 && (errno == EAGAIN || errno == EINTR) && !end)
            return;
        got = got < 0 ? 0 : got;
        leash_say(LEASH_FLOW, hop, piece, (size_t)got);
        tunnel->ended = !got;
        tunnel->may -= (size_t)got < tunnel->may ? (size_t)got : tunnel->may;
    }
}

void tunnels_pump(struct way *way, bool end)
{
    for (enum leash_hop hop = 0; hop < LEASH_HOPS; hop++)
        pump(&way->tunnel[hop], hop, end);
}
