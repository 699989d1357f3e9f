/* Records over RDMA: librdmacm and libibverbs (verbs_connect.c, transport_verbs.c). */
#pragma once

#include <sys/socket.h>

#include "options.h"
#include "transport.h"

struct rdma_cm_id;

struct rdma {
    /* Is this an address of an RDMA device here? */
    bool (*has)(const struct sockaddr *address);
    bool (*any_device)(void);

    /* Connects within `limit_ms`; `credits` is how many records of data this end will
     * have on its way at once. NULL with a trouble. */
    struct transport *(*dial)(const struct sockaddr *address, const struct sockaddr *from,
                              const struct options *options, uint32_t credits,
                              int64_t limit_ms, struct trouble *trouble);

    /* Listens on the address and port that TCP got. NULL with a trouble; its errno is
     * EADDRINUSE where another port may do. */
    struct rdma_cm_id *(*listen)(const struct sockaddr *bound,
                                 const struct options *options, struct trouble *trouble);
    int (*fd)(const struct rdma_cm_id *listener);

    /* The next connection that was asked for and has come about, or NULL. */
    struct transport *(*accept)(struct rdma_cm_id *listener,
                                const struct options *options, uint32_t credits);
    void (*close)(struct rdma_cm_id *listener); /* or NULL */
};

/* NULL: built without librdmacm (transport_noverbs.c). */
extern const struct rdma *const rdma;
