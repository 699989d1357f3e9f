/* One end of a stream: what rdsend and rdrecv have in common. */
#pragma once

#include <stdatomic.h>

#include "child.h"
#include "key.h"
#include "link.h"
#include "ring.h"

/* How long a worker that nobody waits for any more gets to see that. */
enum { SETTLE_MS = 300 };

/* The thread that reads the stream or writes it, so that the one which speaks to the peer
 * never waits for that. */
struct worker {
    pthread_t thread;
    bool started;
    atomic_uint_fast64_t total; /* bytes; may be read at any time */
    atomic_bool over;           /* what follows is settled */
    uint64_t count;             /* of data records */
    int64_t stream_us, network_us; /* time spent waiting */
    struct trouble trouble;
};

struct end {
    const struct options *options; /* not owned */
    struct trouble trouble;
    struct key key;
    struct meeting meeting;
    struct transport *transport; /* NULL before a peer is proven */
    struct link link;            /* its `seals` are NULL where the stream is plain */
    struct ring ring;
    struct seals seals;
    bool checksummed;
    struct child child;
    struct worker worker;
    bool done; /* nothing more is to be moved or heard */
    int output_fd; /* its reader is watched; -1 = none is */
    short output_events; /* what was seen there */
    bool begun; /* end_open did it all */
    int64_t begun_us, shown_us, size; /* size -1 = not known */
};

/* Reads the key; whatever comes of it, to close. */
int end_init(struct end *end, const struct options *options);

/* Starts its command. */
int end_start(struct end *end);

/* All that the stream needs, once the peer is proven: its buffers, its command unless that
 * runs already. `size` is
 * that of what is sent, -1 = not known. Each is 0, or -1 with a trouble. */
int end_open(struct end *end, int64_t size);

/* Starts the worker: `work(end)`, which calls worker_over last. */
int worker_start(struct end *end, void *(*work)(void *));
void worker_over(struct end *end);

/* Waits for its work to be over. */
void worker_await(struct end *end, int limit_ms);

/* Is it over, or was it never started? Else it may stay in read(2) or write(2), and uses
 * what it was given; this process ends anyway. */
bool worker_join(struct end *end);

/* Moves the stream until `done`: each event goes to `take`, and when there is none `move`
 * sees to everything else; it returns 1 if there may be events at once. Both return -1
 * with a trouble. */
int end_run(struct end *end, int (*take)(struct end *, const struct transport_event *),
            int (*move)(struct end *));

/* Nobody waits for the worker any more. */
void end_settle(struct end *end);

/* Says what went wrong, and how fast it was. Returns the exit status. What a worker that
 * does not end may use stays. */
int end_close(struct end *end);

/* rdsend and rdrecv: the exit status; what went wrong was said. */
int send_stream(const struct options *options);
int receive_stream(const struct options *options);
