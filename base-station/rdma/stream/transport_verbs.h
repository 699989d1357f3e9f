/* Records over RDMA: librdmacm and libibverbs. Built without them (transport_noverbs.c),
 * nothing here finds a device. */
#pragma once

#include <sys/socket.h>

#include "options.h"
#include "transport.h"

struct verbs_listener;

/* Is this an address of an RDMA device here? */
bool verbs_has(const struct sockaddr *address);
bool verbs_any_device(void);

/* Connects within `limit_ms`; `credits` is how many records of data this end will have
 * on its way at once. NULL with a trouble. */
struct transport *verbs_dial(const struct sockaddr *address, const struct sockaddr *from,
                             const struct options *options, uint32_t credits,
                             int64_t limit_ms, struct trouble *trouble);

/* Listens on the address and port that TCP got. NULL with a trouble; its errno is
 * EADDRINUSE where another port may do. */
struct verbs_listener *verbs_listen(const struct sockaddr *bound,
                                    const struct options *options, uint32_t credits,
                                    struct trouble *trouble);
int verbs_listener_fd(const struct verbs_listener *listener);

/* The next connection that was asked for and has come about, or NULL. */
struct transport *verbs_accept(struct verbs_listener *listener);
void verbs_listener_close(struct verbs_listener *listener);
