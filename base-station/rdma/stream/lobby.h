/* Where strangers wait until one of them has proven the key: at most eight at once, each
 * for five seconds. None of them can end the receiver. */
#pragma once

#include <sys/socket.h>

#include "meeting.h"
#include "options.h"
#include "transport.h"

enum { LOBBY_SEATS = 8, LOBBY_LIMIT_MS = 5000 };

struct guest {
    struct transport *transport; /* NULL = the seat is free */
    struct meeting meeting;
    int64_t until_ms;
    bool leaving; /* it was told why; only its leave is awaited */
};

struct lobby {
    const struct options *options; /* not owned */
    const struct key *key;
    int listen_fd;
    struct rdma_cm_id *rdma_id; /* which listens, too */
    struct sockaddr_storage bound;
    struct guest guests[LOBBY_SEATS];
};

/* Listens. 0, or -1 with a trouble; to close in either case. */
int lobby_open(struct lobby *lobby, const struct options *options, const struct key *key,
               struct trouble *trouble);

/* Waits for a proven sender; `out_fd` is watched, so that a reader that left ends the
 * wait. NULL with a trouble. */
struct transport *lobby_meet(struct lobby *lobby, int out_fd, struct meeting *meeting,
                             struct trouble *trouble);

void lobby_close(struct lobby *lobby);
