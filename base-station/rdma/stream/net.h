/* Names, addresses and listening sockets. */
#pragma once

#include <netdb.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "trouble.h"

/* "192.0.2.1:7" or "[2001:db8::1]:7"; port 0 is left out. */
void net_name(const struct sockaddr *address, char *into, size_t room);

/* What an errno of connecting means, and what to check. */
const char *net_advice(int error);

bool net_is_loopback(const struct sockaddr *address);

/* Is it an address outside of loopback, link-local and private networks (RFC 1918, 4193,
 * 6598)? */
bool net_is_foreign(const struct sockaddr *address);
socklen_t net_length(const struct sockaddr *address);
uint16_t net_port(const struct sockaddr *address);

/* Resolves one host (and port), within `limit_ms`: getaddrinfo(3) itself may wait for a
 * silent name server for longer than anybody wants to. NULL with a trouble; to free with
 * freeaddrinfo. */
struct addrinfo *net_resolve(const char *host, const char *port, int64_t limit_ms,
                             struct trouble *trouble);

/* "7471" or "7471-7479". False: it is neither. */
bool net_ports(const char *text, uint16_t *least, uint16_t *most);

/* Listens on every address (both families on one socket where IPv6 is there), or on
 * `bind_to` only, on the first of `ports` that is free. The address it got is in
 * `*bound`. The descriptor, or -1. */
int net_listen(const char *bind_to, const char *ports, struct sockaddr_storage *bound,
               socklen_t *bound_length, struct trouble *trouble);

/* The addresses under which this machine may be reached, with commas: those of its
 * interfaces that are up, loopback only if there is no other. `preferred` (may be NULL)
 * says which come first. To free. */
char *net_addresses(const struct sockaddr *bound,
                    bool (*preferred)(const struct sockaddr *));
