/* A connection that carries records: over TCP (transport_tcp.c) or RDMA
 * (transport_verbs.c). One thread owns it; nothing here ever waits but
 * transport_finish. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "records.h"
#include "ring.h"
#include "trouble.h"

enum transport_event_kind {
    EVENT_RECORD, /* a record that is not data; its `body`, which stands behind its header,
                   * is the caller's until the next poll */
    EVENT_DATA,   /* data, in a slot that was given; the slot is the caller's now */
    EVENT_SENT,   /* a slot that was posted; it is the caller's again */
};

struct transport_event {
    enum transport_event_kind kind;
    struct record record;
    uint8_t *body;
    struct slot *slot;
};

enum {
    TRANSPORT_FDS = 2,
    CONTROLS_MOST = 4,
    CONTROLS_MEMORY = CONTROLS_MOST * CONTROL_BYTES,
};

struct options;
struct rdma_cm_id;
struct transport;

struct transport_kind {
    const char *name; /* as --transport takes it */
    int number;       /* as the hello has it */
    bool ordered; /* control records go after the data that was posted before them */

    /* Makes the slots' memory known to the device; NULL: there is none. */
    int (*ring)(struct transport *, struct ring *, struct trouble *);
    /* Sends slot->bytes, header and body. */
    int (*post)(struct transport *, struct slot *, struct trouble *);
    /* Lets a slot be received into. */
    int (*give)(struct transport *, struct slot *, struct trouble *);
    /* 1: an event; 0: none now; -1: trouble, or the peer left. */
    int (*poll)(struct transport *, struct transport_event *, struct trouble *);
    /* Fills in what to poll(2) for before the next poll(), after one that had nothing.
     * Returns how many. */
    int (*fds)(struct transport *, struct pollfd *);
    /* For transport_finish: goes on, drops what comes, and returns how much has not
     * reached the peer; 0 also where it never will. */
    uint64_t (*left)(struct transport *);
    /* Ends the connection, after that; NULL: close() is enough. */
    void (*leave)(struct transport *);
    void (*close)(struct transport *);
};

struct transport {
    const struct transport_kind *kind;
    char peer[80];
    char device[64];
    bool loopback;      /* both ends are on this machine, and share its caches */
    bool foreign;       /* the peer is not in a private network */
    uint32_t data_most; /* the greatest body of a data record; 0 until the proof */
    uint32_t spares;    /* slots that it needs beyond the ring's own */
    bool peer_left;
    uint64_t heard_bytes; /* of the peer, as far as they come in parts of records */
    bool in_part;         /* a record has begun to come, and has not ended */
    /* poll(2) had nothing to say about its descriptors: poll() need not ask them. */
    bool quiet;
    struct slot control[CONTROLS_MOST]; /* for records that are not data */
    struct slots control_free;
};

/* Over TCP: takes a connected socket over, also when it fails. NULL with a trouble. */
struct transport *tcp_open(int fd, struct trouble *trouble);

/* Connects within `limit_ms`, from the address `from` unless that is NULL. NULL with a
 * trouble. */
struct transport *tcp_dial(const struct sockaddr *address, const struct sockaddr *from,
                           int64_t limit_ms, struct trouble *trouble);

/* Over RDMA (verbs_connect.c). */
struct rdma {
    /* Is this an address of an RDMA device here? */
    bool (*has)(const struct sockaddr *address);
    bool (*any_device)(void);

    /* Connects within `limit_ms`. NULL with a trouble. */
    struct transport *(*dial)(const struct sockaddr *address, const struct sockaddr *from,
                              const struct options *options, int64_t limit_ms,
                              struct trouble *trouble);

    /* Listens on the address and port that TCP got. NULL with a trouble; its errno is
     * EADDRINUSE where another port may do. */
    struct rdma_cm_id *(*listen)(const struct sockaddr *bound,
                                 const struct options *options, struct trouble *trouble);
    int (*fd)(const struct rdma_cm_id *listener);

    /* The next connection that was asked for and has come about, or NULL. */
    struct transport *(*accept)(struct rdma_cm_id *listener,
                                const struct options *options);
    void (*close)(struct rdma_cm_id *listener); /* or NULL */
};

/* NULL: built without librdmacm (transport_noverbs.c). */
extern const struct rdma *const rdma;
#define RDMA_LEFT_OUT "built without librdmacm"

/* Queues a whole record that is not data; copied. At most CONTROLS_MOST wait; a heartbeat
 * or a credit that would be the last of these is left for later: returns 1. */
int transport_say(struct transport *transport, const uint8_t *record,
                  struct trouble *trouble);

/* Sends what is queued, says that no more comes, waits until the peer has it all: while
 * something moves, at most `limit_ms` after it moved, FINISH_MOST_MS in all. A signal ends
 * the wait. */
enum { FINISH_MOST_MS = 10000 };
void transport_finish(struct transport *transport, int limit_ms);

void transport_close(struct transport *transport); /* NULL: there is none */

/* What the peer sent is not to be: -1, a trouble. */
int transport_refuse(const struct transport *transport, const char *why,
                     struct trouble *trouble);

/* --- for the kinds --- */

/* `memory` is CONTROLS_MEMORY bytes, for its control slots. */
void transport_open(struct transport *transport, const struct transport_kind *kind,
                    uint8_t *memory);
void transport_name(struct transport *transport, const struct sockaddr *peer);

/* Is it a control slot? */
bool transport_controls(const struct transport *transport, const struct slot *slot);
