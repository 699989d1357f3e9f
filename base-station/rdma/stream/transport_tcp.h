/* Records over TCP. */
#ifndef TRANSPORT_TCP_H
#define TRANSPORT_TCP_H

#include <sys/socket.h>

#include "transport.h"

/* Takes a connected socket over, also when it fails. NULL with a trouble. */
struct transport *tcp_open(int fd, struct trouble *trouble);

/* Connects within `limit_ms`. NULL with a trouble. */
struct transport *tcp_dial(const struct sockaddr *address, socklen_t length,
                           const struct sockaddr *from, socklen_t from_length,
                           int64_t limit_ms, struct trouble *trouble);

#endif
