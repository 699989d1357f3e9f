/* The thread that reads the stream or writes it, so that the one which speaks to the peer
 * never waits for that: what source.h and sink.h share. */
#ifndef WORKER_H
#define WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "ring.h"
#include "seal.h"
#include "trouble.h"

struct worker {
    /* Set before it starts; not owned. */
    struct ring *ring;
    struct seal *seal; /* NULL = plain */
    bool checksummed;

    pthread_t thread;
    bool started;
    atomic_uint_fast64_t total; /* bytes; may be read at any time */
    atomic_bool over;           /* what follows is settled */
    uint64_t count;             /* of data records */
    int64_t stream_us, network_us; /* time spent waiting */
    struct trouble trouble;
};

/* Runs `work(argument)`, which calls worker_over last. 0, or -1 with a trouble. */
int worker_start(struct worker *worker, void *(*work)(void *), void *argument,
                 struct trouble *trouble);
void worker_over(struct worker *worker);

/* Waits for its work to be over. */
void worker_await(struct worker *worker, int limit_ms);

/* Is it over, or was it never started? Else it may stay in read(2) or write(2), and uses
 * what it was given; this process ends anyway. */
bool worker_join(struct worker *worker);

#endif
