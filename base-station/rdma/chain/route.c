/* Data path of a hop through a firewall, at one agent: see route.h. */
#include "route.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "descriptors.h"
#include "net.h"
#include "error.h"

enum { TRIES_MOST = 32 };

void route_init(struct route *route)
{
    *route = (struct route){.peers_fd = -1, .where_fd = -1, .socket_fd = -1, .back_fd = -1};
    for (int i = 0; i < AGENT_HOPS; i++)
        route->tunnel[i].fd = -1;
}

void route_close(struct route *route)
{
    shut(&route->peers_fd);
    shut(&route->where_fd);
    shut(&route->socket_fd);
    shut(&route->back_fd);
    for (int i = 0; i < AGENT_HOPS; i++) {
        shut(&route->tunnel[i].fd);
        bytes_close(&route->tunnel[i].pending);
    }
}

/* Start connecting to each address. */
static nfds_t begin(struct pollfd *tries, const char *addresses, const char *port, int64_t end_ms)
{
    nfds_t count = 0;
    char *hosts = allocated(strdup(addresses)), *rest = hosts, *host;
    while ((host = strsep(&rest, ",")) && now_ms() < end_ms) {
        struct error why = {0};
        struct addrinfo *found = net_resolve(host, port, end_ms - now_ms(), &why);
        for (struct addrinfo *one = found; one && count < TRIES_MOST; one = one->ai_next) {
            int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            if (fd >= 0 && connect(fd, one->ai_addr, one->ai_addrlen) < 0 && errno != EINPROGRESS)
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
    int code = 0;
    socklen_t length = sizeof code;
    if (try->fd < 0 || !try->revents)
        return false;
    getsockopt(try->fd, SOL_SOCKET, SO_ERROR, &code, &length);
    if (code)
        shut(&try->fd);
    return !code;
}

/* Return true if one of these addresses accepts a connection in time. A hang-up on `stop_fd` ends
 * the wait. */
static bool reachable(const char *addresses, const char *port, int stop_fd)
{
    struct pollfd polled[TRIES_MOST + 1];
    int64_t end_ms = now_ms() + ROUTE_REACH_MS, left_ms;
    nfds_t count = begin(polled, addresses, port, end_ms), left = count;
    bool found = false;
    polled[count] = (struct pollfd){stop_fd, 0, 0}; /* POLLHUP: rdpipe left */
    while (!found && left && !polled[count].revents && (left_ms = end_ms - now_ms()) > 0 &&
           (poll(polled, count + 1, (int)left_ms) >= 0 || errno == EINTR)) {
        left = 0;
        for (nfds_t i = 0; i < count; i++) {
            found |= connected(&polled[i]);
            left += polled[i].fd >= 0;
        }
    }
    for (nfds_t i = 0; i < count; i++)
        shut(&polled[i].fd);
    return found;
}

/* Return the tool's end of a new tunnel, or -1 with errno. */
static int tunnel_open(struct route *route, enum agent_hop hop)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    route->tunnel[hop] = (struct tunnel){.fd = ends[1], .window = AGENT_WINDOW};
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    return ends[0];
}

void route_back(struct route *route, bool says)
{
    struct tunnel *tunnel = &route->tunnel[AGENT_HOP_BACK];
    int ends[2];
    if (tunnel->fd >= 0 || tunnel->ended || pipe2(ends, O_CLOEXEC) < 0)
        return;
    route->back_fd = ends[says];
    *tunnel = (struct tunnel){.fd = ends[!says], .window = AGENT_WINDOW, .ended = !says};
    fcntl(tunnel->fd, F_SETFL, O_NONBLOCK);
}

int route_out(struct route *route, const struct agent_work *work, int stop_fd)
{
    if (!*work->key_out || work->route == AGENT_SURE)
        return 0;
    if (work->route == AGENT_STRAIGHT)
        return reachable(work->addresses, work->port, stop_fd) ? 0 : -1;
    route->socket_fd = tunnel_open(route, AGENT_HOP_OUT);
    return route->socket_fd < 0 ? -1 : 0;
}

int route_in_via_ssh(struct route *route)
{
    int fd = tunnel_open(route, AGENT_HOP_IN);
    bool ready = fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
    int result = ready ? fd_send(route->peers_fd, fd, ".") : -1;
    shut(&fd);
    return result;
}

void tunnels_watched(const struct route *route, struct pollfd polled[AGENT_HOPS])
{
    for (int i = 0; i < AGENT_HOPS; i++) {
        const struct tunnel *tunnel = &route->tunnel[i];
        bool reads = tunnel->window && !tunnel->ended;
        short events = (short)((reads ? POLLIN : 0) | (tunnel->pending.length ? POLLOUT : 0));
        polled[i] = (struct pollfd){events ? tunnel->fd : -1, events, 0};
    }
}

int tunnel_take(struct route *route, const struct agent_frame *frame)
{
    struct tunnel *tunnel = &route->tunnel[frame->hop];
    if (frame->verb == AGENT_ACK) {
        tunnel->window += agent_frame_number(frame, AGENT_WINDOW + 1);
        return tunnel->window > AGENT_WINDOW ? -1 : 0;
    }
    if (tunnel->fd < 0) /* its tool has ended */
        return 0;
    tunnel->ending |= !frame->length;
    if (tunnel->pending.length + frame->length > AGENT_WINDOW)
        return -1;
    bytes_add(&tunnel->pending, frame->body, frame->length);
    return 0;
}

static void give(struct tunnel *tunnel, enum agent_hop hop)
{
    ssize_t sent = 1;
    char text[24];
    while (tunnel->pending.length && sent > 0) {
        sent = write(tunnel->fd, tunnel->pending.data, tunnel->pending.length);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            sent = (ssize_t)tunnel->pending.length; /* the reader has closed it */
        bytes_drop(&tunnel->pending, sent > 0 ? (size_t)sent : 0);
        tunnel->unacknowledged += sent > 0 ? (size_t)sent : 0;
    }
    if (tunnel->unacknowledged >= AGENT_WINDOW / 4 ||
        (tunnel->unacknowledged && !tunnel->pending.length)) {
        int length = snprintf(text, sizeof text, "%zu", tunnel->unacknowledged);
        agent_send(AGENT_ACK, hop, text, (size_t)length + 1);
        tunnel->unacknowledged = 0;
    }
    if (tunnel->ending && !tunnel->pending.length) {
        tunnel->ending = false;
        if (shutdown(tunnel->fd, SHUT_WR) < 0) /* a pipe */
            shut(&tunnel->fd);
    }
}

static void pump(struct tunnel *tunnel, enum agent_hop hop, bool end)
{
    static char piece[AGENT_FLOW_BYTES];
    if (tunnel->fd < 0)
        return;
    give(tunnel, hop);
    while ((tunnel->window || end) && !tunnel->ended) {
        size_t most = end || tunnel->window > sizeof piece ? sizeof piece : tunnel->window;
        ssize_t got = read(tunnel->fd, piece, most);
        if (got < 0 && (errno == EAGAIN || errno == EINTR) && !end)
            return;
        got = got < 0 ? 0 : got;
        agent_send(AGENT_FLOW, hop, piece, (size_t)got);
        tunnel->ended = !got;
        tunnel->window -= (size_t)got < tunnel->window ? (size_t)got : tunnel->window;
    }
}

void tunnels_pump(struct route *route, bool end)
{
    for (enum agent_hop hop = 0; hop < AGENT_HOPS; hop++)
        pump(&route->tunnel[hop], hop, end);
}
