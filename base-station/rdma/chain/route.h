/* Data path of a hop through a firewall, at one agent:
 *
 *   straight       rdsend dials rdrecv; the agent checks first that the port is reachable
 *   through SSH    the agents forward the data in their sessions, rdpipe between them; each
 *                  hands its tool one end of a socket pair */
#pragma once

#include <poll.h>

#include "bytes.h"
#include "agent_protocol.h"

enum { ROUTE_REACH_MS = 3500 }; /* a lost SYN is resent after 1 s and after 3 s */

/* One end of a hop through SSH. The back channel of rdcp always uses one. */
struct tunnel {
    int fd; /* -1: unused or ended */
    struct bytes pending; /* bytes the socket has not accepted yet */
    size_t window, unacknowledged; /* bytes that may be sent; bytes accepted */
    bool ending;       /* `pending` holds the last bytes */
    bool ended;        /* the tool has closed its output */
};

struct route {
    int peers_fd;   /* our end of the socket that passes connections to rdrecv; -1 */
    int where_fd;    /* passes the address to rdsend; -1 */
    int socket_fd;   /* connection for rdsend; -1 */
    int back_fd;     /* the segment's end of the back channel; -1 */
    struct tunnel tunnel[AGENT_HOPS];
};

void route_init(struct route *route);
void route_close(struct route *route);

/* Prepare the path of the hop out of the segment. Return 0, or -1 if there is none. Checking an
 * address takes up to ROUTE_REACH_MS; a hang-up on `stop_fd` ends the check. */
int route_out(struct route *route, const struct agent_work *work, int stop_fd);

/* Lead the hop into the segment through SSH. Return 0, or -1 with errno. */
int route_in_via_ssh(struct route *route);

/* Open the back channel, from the segment's output (`says`) or into its stdin. Early data is
 * buffered in it. */
void route_back(struct route *route, bool says);

/* Fill in the events to poll for. */
void tunnels_watched(const struct route *route, struct pollfd polled[AGENT_HOPS]);

/* Take `frame` from rdpipe. Return -1 if it breaks the protocol. */
int tunnel_take(struct route *route, const struct agent_frame *frame);

/* Forward the available data in both directions; with `end`, all of it. */
void tunnels_pump(struct route *route, bool end);
