/* Connection that carries records: over TCP (transport.c) or RDMA (transport_verbs.c). A single
 * thread owns it. Only transport_finish blocks. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "records.h"
#include "error.h"

enum transport_event_kind {
    /* a record other than data; `body` follows its header in memory and is valid until the next
     * poll */
    EVENT_RECORD,
    EVENT_DATA,   /* data, in a slot passed to give(); the caller owns it again */
    EVENT_SENT,   /* a posted slot was sent; the caller owns it again */
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
    const char *name; /* value of --transport */
    int number;       /* value in the hello */
    bool ordered; /* control records are sent after data posted earlier */

    /* Register the slots' memory with the device; NULL: no registration needed. */
    int (*ring)(struct transport *, struct ring *, struct error *);
    /* Send slot->bytes, header and body. */
    int (*post)(struct transport *, struct slot *, struct error *);
    /* Offer a slot as a receive buffer. */
    int (*give)(struct transport *, struct slot *, struct error *);
    /* Return 1: an event; 0: no event yet; -1: error, or the peer closed. */
    int (*poll)(struct transport *, struct transport_event *, struct error *);
    /* Fill in the descriptors to poll(2) before the next poll(), after a poll() without an event.
     * Return their number. */
    int (*fds)(struct transport *, struct pollfd *);
    /* For transport_finish: continue sending, discard received data. Return the amount that has not
     * reached the peer; 0 also if it never will. */
    uint64_t (*left)(struct transport *);
    /* End the connection, after left(); NULL: close() is enough. */
    void (*leave)(struct transport *);
    void (*close)(struct transport *);
};

struct transport {
    const struct transport_kind *kind;
    char peer[80];
    char device[64];
    bool loopback;      /* both ends are on this machine and share its caches */
    bool foreign;       /* the peer is outside private networks */
    uint32_t data_most; /* largest body of a data record; 0 until the proof */
    uint32_t spares;    /* slots needed beyond the ring's own */
    bool peer_left;
    bool peer_reset; /* left by a reset, not by a close */
    uint64_t heard_bytes; /* bytes received, if records arrive in parts */
    bool in_part;         /* a record is partly received */
    /* poll(2) reported no event on the descriptors: poll() can skip them. */
    bool quiet;
    struct slot control[CONTROLS_MOST]; /* for records other than data */
    struct slots control_free;
};

/* Open a connection over a connected TCP socket, and own the socket even on failure. NULL with an
 * error. */
struct transport *tcp_open(int fd, struct error *error);

/* Connect within `limit_ms`, from the address `from` unless it is NULL. NULL with an error. */
struct transport *tcp_connect(const struct sockaddr *address, const struct sockaddr *from,
                              int64_t limit_ms, struct error *error);

/* RDMA functions (verbs_connect.c). */
struct rdma {
    /* Return true if a local RDMA device has this address. */
    bool (*has)(const struct sockaddr *address);
    bool (*any_device)(void);

    /* Connect within `limit_ms`. NULL with an error. */
    struct transport *(*connect)(const struct sockaddr *address, const struct sockaddr *from,
                              const struct options *options, int64_t limit_ms,
                              struct error *error);

    /* Listen on the address and port of the TCP socket. NULL with an error; its errno is EADDRINUSE
     * if another port may work. */
    struct rdma_cm_id *(*listen)(const struct sockaddr *bound,
                                 const struct options *options, struct error *error);
    int (*fd)(const struct rdma_cm_id *listener);

    /* Accept the next established connection; NULL if there is no connection yet. */
    struct transport *(*accept)(struct rdma_cm_id *listener, const struct options *options);
    void (*close)(struct rdma_cm_id *listener); /* NULL is allowed */
};

/* NULL: built without librdmacm (VERBS=0). */
extern const struct rdma *const rdma;
#define RDMA_LEFT_OUT "built without librdmacm"

/* Queue a copy of a whole record other than data. At most CONTROLS_MOST are queued. A heartbeat or
 * a credit may not take the last place: returns 1, retry later. */
int transport_say(struct transport *transport, const uint8_t *record, struct error *error);

/* Send the queued records, shut down the sending side and wait until the peer has received
 * everything: at most `limit_ms` after the last progress, FINISH_MOST_MS in all. A signal ends the
 * wait. */
enum { FINISH_MOST_MS = 10000 };
void transport_finish(struct transport *transport, int limit_ms);

void transport_close(struct transport *transport); /* NULL is allowed */

/* Reject a record of the peer: return -1 with an error. */
int transport_refuse(const struct transport *transport, const char *why, struct error *error);

/* Used by the implementations */

/* Initialise the common part. `memory` is CONTROLS_MEMORY bytes, for the control slots. */
void transport_open(struct transport *transport, const struct transport_kind *kind,
                    uint8_t *memory);
void transport_name(struct transport *transport, const struct sockaddr *peer);

/* Return true for a control slot. */
bool transport_controls(const struct transport *transport, const struct slot *slot);

/* One RDMA connection: set-up (verbs_connect.c) and records (transport_verbs.c) */

enum {
    CONTROL_RECEIVES = 8, /* beyond the credits */
    /* A receiver's buffers before the proof: hello, and proof or abort. With more buffers, the
     * first data would arrive in the remaining small buffers. */
    FIRST_RECEIVES = 2,
    VERBS_RETRIES = 6, /* 7 means "for ever" on some devices */
    ACK_LEAST = 16,    /* 4.096 us * 2^16 = 0.27 s before a retry */
    ACK_MOST = 21,     /* 8.6 s; a minute in all */
    ACK_MARGIN_MS = 1000,
};

/* Open a connection over `id`, and own `id` even on failure. The queue pair has its first receives
 * posted. The queues hold `credits` data records, which we receive if `receives` is set. NULL with
 * an error. */
struct transport *verbs_open(struct rdma_cm_id *id, bool receives, uint32_t credits,
                             struct error *error);
