/* How the data of a hop gets through a firewall, at one leash:
 *
 *   straight       rdsend dials rdrecv: looked for first, and no more if it is there
 *   back           the leash of rdrecv dials that of rdsend, and says a token
 *   through SSH    the leashes pass it on in their sessions, and rdpipe between them
 *
 * A leash makes the connection of the last two, and hands it to its tool. */
#pragma once

#include <poll.h>

#include "bytes.h"
#include "leash_work.h"

enum { WAY_REACH_MS = 3500 }; /* a lost SYN is sent again after 1 s and after 3 */

/* The end of one hop that goes through SSH, as the way back of rdcp always does. */
struct tunnel {
    int fd; /* -1: it does not, or has ended */
    struct bytes late; /* what the socket has not taken yet */
    size_t may, took;  /* bytes that may be sent; that are taken and not told of */
    bool ending;       /* what is late is the last */
    bool ended;        /* its tool has said all */
};

struct way {
    int guests_fd;   /* our end of where rdrecv gets connections; -1 */
    int where_fd;    /* where rdsend, which runs already, hears where to; -1 */
    int listener_fd; /* for the one who dials back; -1 */
    int socket_fd;   /* that rdsend gets; -1 */
    int back_fd;     /* the segment's end of the way back; -1 */
    struct tunnel tunnel[LEASH_HOPS];
};

void way_init(struct way *way);
void way_close(struct way *way);

/* Is the connection there on which `work` says its hop goes? Looks, and does not wait for
 * long. 0: not yet; 1: yes; -1: no, and none will be. */
int way_find(struct way *way, const struct leash_work *work, int stop_fd);

/* What rdpipe told of the hop into this segment: TOKEN PORT ADDRESS,..., or nothing, which
 * is through SSH. -1: it cannot be done. */
int way_dial(struct way *way, const struct words *to, int stop_fd);

/* Opens a way beside the hops, from what the segment `says` there or into its stdin: what
 * comes early waits in it. */
void way_back(struct way *way, bool says);

/* What to wait for on them. */
void tunnels_watched(const struct way *way, struct pollfd polled[LEASH_HOPS]);

/* Takes `frame` from rdpipe. -1: nobody sends such a thing. */
int tunnel_take(struct way *way, const struct leash_said *frame);

/* Passes on what there is, to rdpipe too; at the `end` all of it. */
void tunnels_pump(struct way *way, bool end);
