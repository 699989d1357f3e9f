/* The command lines of rdsend and rdrecv. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "records.h"
#include "trouble.h"

enum wanted_transport { WANT_AUTO, WANT_RDMA, WANT_TCP };

struct options {
    bool sends;
    const char *key_file, *new_key, *bind_to, *device;
    int64_t key_fd, announce_fd; /* -1 = not given */
    int64_t guests_fd, socket_fd; /* of a leash: where connections come from; one */
    int64_t where_fd;            /* of a leash: where to is heard there, while the command
                                    runs already */
    int64_t status_fd;           /* that is told how the command ended by itself */
    const char *ports;           /* one of these, for port 0; NULL = any */
    int64_t transport;           /* enum wanted_transport */
    int64_t checksum;            /* CHECKSUM_ ... */
    int protection;              /* enum protection */
    int plain;                   /* how often it was given */
    int sync, verbose, json, progress, help, version; /* as bool */
    const char *hop; /* of a chain, in which everyone who is at fault says so; NULL */
    int64_t timeout_ms, idle_ms, connect_ms, finish_ms; /* 0 = no limit */
    int64_t rate;           /* bytes a second; 0 = no limit */
    int64_t chunk, credits; /* 0 = as the transport likes it */
    const char *host, *port;
    const char *file; /* NULL: stdin or stdout, or a command */
    char **command;   /* NULL, or ended by NULL */
};

/* Is it said elsewhere in the chain, of which this end is a hop? A signal comes from its
 * leash, which ends it for what another has said. */
static inline bool heard_in_chain(const struct trouble *trouble,
                                  const struct options *options)
{
    return options->hop && trouble->heard;
}

/* 0, or -1 with a trouble. */
int options_read(struct options *options, bool sends, int argc, char **argv,
                 struct trouble *trouble);

/* "1.5G" as a number of bytes (K, M, G, T are powers of 1024). -1: it is none. */
int64_t options_bytes(const char *text);

/* What main() does: reads them and runs what was asked for. Returns the exit status. */
int options_main(bool sends, int argc, char **argv, int (*run)(const struct options *));

/* What this side offers; over RDMA no more than may be pinned. Returns whether that made
 * it less; -1 with a trouble: not even the least may be pinned. */
int hello_of_options(struct hello *mine, const struct options *options, int transport,
                     struct trouble *trouble);

uint64_t pinned_limit(void); /* how much memory may be pinned for RDMA, in bytes */

/* What a side pins that offers this: its ring, queues and small records; a receiver
 * also receives for the records that are not data. */
uint64_t pinned_need(const struct hello *hello);

/* Makes the hello's chunk and credits smaller until they fit into `limit_bytes`. Returns
 * whether something was changed; -1: not even the least of both fits. */
int pinned_fit(struct hello *hello, uint64_t limit_bytes);

#define RDPIPE_VERSION "1.0"
