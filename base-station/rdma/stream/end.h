/* One end of a stream: the code shared by rdsend and rdrecv. */
#pragma once

#include <stdatomic.h>
#include <xxhash.h>
#ifdef __x86_64__ /* detects the features of the processor, under the usual names */
#include <xxh_x86dispatch.h>
#endif

#include "child.h"
#include "link.h"
#include "records.h"

/* Time an abandoned worker gets to notice that the stream has ended. */
enum { SETTLE_MS = 300 };

struct end;

/* Thread that reads or writes the stream, so that the thread of the peer connection never blocks on
 * it. */
struct worker {
    pthread_t thread;
    void (*work)(struct end *, XXH3_state_t *);
    bool started;
    atomic_uint_fast64_t total; /* bytes; may be read at any time */
    atomic_bool over;           /* the fields below are final */
    uint64_t count;             /* data records */
    int64_t stream_us, network_us; /* time spent waiting */
    struct error error;
};

struct end {
    const struct options *options; /* not owned */
    struct error error;
    struct key key;
    struct handshake handshake;
    struct transport *transport; /* NULL before a peer is authenticated */
    struct link link;            /* its `seals` are NULL if the stream is plain */
    struct ring ring;
    struct seals seals;
    bool checksummed;
    struct child child;
    struct worker worker;
    bool done; /* nothing more to send or receive */
    int output_fd; /* watch the reader of this output; -1 = no output to watch */
    short output_events; /* poll(2) events seen on output_fd */
    bool begun; /* end_open has completed */
    int64_t begun_us, shown_us, size; /* size -1 = unknown */
};

/* Read the key. Call end_close afterwards, even on failure. */
int end_init(struct end *end, const struct options *options);

/* Start the command of this end. */
int end_start(struct end *end);

/* Prepare the stream once the peer is authenticated: allocate the buffers and start the command
 * unless it is already running. `size` is the number of bytes to send, -1 = unknown. Each function
 * returns 0, or -1 with an error. */
int end_open(struct end *end, int64_t size);

/* Start the worker, a thread that calls `work` with a new hash of the stream. */
int worker_start(struct end *end, void (*work)(struct end *, XXH3_state_t *));

/* Wait for the worker to finish. */
void worker_await(struct end *end, int limit_ms);

/* Return true if the worker has finished or was never started. Otherwise it may still be blocked in
 * read(2) or write(2) and uses its buffers; the process then exits without it. */
bool worker_join(struct end *end);

/* Move the stream until `done`. Each event is passed to `take`; if there is no event, `move` does
 * all other work. `move` returns 1 if more events may be available at once. Both return -1 with an
 * error. */
int end_run(struct end *end, int (*take)(struct end *, const struct transport_event *),
            int (*move)(struct end *));

/* Abandon the worker. */
void end_settle(struct end *end);

/* Report the error and the throughput. Return the exit status. Keep everything in use by a worker
 * that does not end. */
int end_close(struct end *end);
