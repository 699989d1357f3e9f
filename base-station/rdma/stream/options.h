/* The command lines of rdsend and rdrecv. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "records.h"
#include "error.h"

enum wanted_transport { WANT_AUTO, WANT_RDMA, WANT_TCP };

struct options {
    bool sends;
    const char *key_file, *new_key, *bind_to, *device;
    int64_t key_fd, announce_fd; /* -1 = not given */
    /* Given by an agent: Unix socket that passes accepted connections; Unix socket that passes the
     * address, and the connection if it exists already. */
    int64_t connections_fd, address_fd;
    int socket_fd; /* that connection; -1 = none */
    /* receives the exit status of a command that ends by itself */
    int64_t status_fd;
    int rsh; /* as bool; given by an agent: the end of a command ends the stream, see rdpipe.1 */
    const char *ports;           /* port or range to try for port 0; NULL = any */
    int64_t transport;           /* enum wanted_transport */
    int64_t checksum;            /* CHECKSUM_ ... */
    int protection;              /* enum protection */
    int plain;                   /* number of times given */
    int sync, verbose, json, progress, help, version; /* as bool */
    /* label in a chain where the failing hop reports its own error; NULL */
    const char *hop;
    int64_t timeout_ms, idle_ms, connect_ms, finish_ms; /* 0 = no limit */
    int64_t rate;           /* bytes a second; 0 = no limit */
    int64_t chunk, credits; /* 0 = default of the transport */
    const char *host, *port;
    const char *file; /* NULL: stdin or stdout, or a command */
    char **command;   /* NULL, or ended by NULL */
};

/* Return true if another hop of the chain reports this error. A signal comes from the agent, which
 * ends this hop after an error elsewhere. */
static inline bool heard_in_chain(const struct error *error, const struct options *options)
{
    return options->hop && error->heard;
}

/* Parse the command line. Return 0, or -1 with an error. */
int options_read(struct options *options, bool sends, int argc, char **argv, struct error *error);

/* Parse "1.5G" as a number of bytes (K, M, G, T are powers of 1024). Return -1 if invalid. */
int64_t options_bytes(const char *text);

/* Body of main(): parse the options and call `run`, which reports its errors itself. Return the
 * exit status. */
int options_main(bool sends, int argc, char **argv, int (*run)(const struct options *));

/* Fill in the hello of this side. Over RDMA, limit it to the memory that may be pinned. Return
 * whether the limit reduced it; -1 with an error if not even the minimum may be pinned. */
int hello_of_options(struct hello *mine, const struct options *options, int transport,
                     struct error *error);

uint64_t pinned_limit(void); /* bytes that may be pinned for RDMA */

/* Compute the bytes that a side pins for this hello: its ring, queues and small records. A receiver
 * also has receive buffers for the other records. */
uint64_t pinned_need(const struct hello *hello);

/* Reduce the hello's chunk and credits until they fit into `limit_bytes`. Return whether they were
 * changed; -1 if not even the minimum of both fits. */
int pinned_fit(struct hello *hello, uint64_t limit_bytes);

#define RDPIPE_VERSION "1.0"
