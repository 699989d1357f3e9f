/* Names, addresses and listening sockets. */
#pragma once

#include <netdb.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "error.h"

/* Format as "192.0.2.1:7" or "[2001:db8::1]:7"; port 0 is left out. */
void net_name(const struct sockaddr *address, char *into, size_t room);

/* Explain an errno of connect(2) and suggest a check. */
const char *net_advice(int code);

bool net_is_loopback(const struct sockaddr *address);

/* Return true for an address outside loopback, link-local and private networks (RFC 1918, 4193,
 * 6598). */
bool net_is_foreign(const struct sockaddr *address);
socklen_t net_length(const struct sockaddr *address);
uint16_t net_port(const struct sockaddr *address);

/* Resolve one host (and port) within `limit_ms`. getaddrinfo(3) itself may wait too long for an
 * unresponsive name server. NULL with an error. Free the result with freeaddrinfo. */
struct addrinfo *net_resolve(const char *host, const char *port, int64_t limit_ms,
                             struct error *error);

/* Parse "7471" or "7471-7479". Return false for any other text. */
bool net_ports(const char *text, uint16_t *least, uint16_t *most);

/* Listen on every address (both families on one socket if IPv6 is available), or on `bind_to`
 * only, on the first free port of `ports`. `*bound` receives the address. Return the descriptor,
 * or -1. */
int net_listen(const char *bind_to, const char *ports, struct sockaddr_storage *bound,
               socklen_t *bound_length, struct error *error);

/* Return the addresses of this machine, comma-separated: those of its active interfaces, loopback
 * only if there is no other. `preferred` (may be NULL) selects the addresses to list first. The
 * caller frees the result. */
char *net_addresses(const struct sockaddr *bound, bool (*preferred)(const struct sockaddr *));
