/* Where the stream is written: a thread that empties the ring's slots. It alone touches
 * the output, and judges whether what came is what was sent. */
#ifndef SINK_H
#define SINK_H

#include <pthread.h>
#include <stdatomic.h>

#include "ring.h"
#include "seal.h"
#include "target.h"

struct sink {
    /* Set before it starts; not owned. */
    struct target *target;
    struct ring *ring;
    struct seal *seal; /* NULL = plain */
    bool checksummed;

    struct ending end; /* set before sink_finish */
    uint64_t count;    /* data records taken */
    bool end_known;

    pthread_t thread;
    bool started;
    atomic_uint_fast64_t total; /* may be read at any time */
    atomic_int fd;              /* being written; -1 before and after */
    atomic_int fate;            /* see sink_give_up */
    atomic_bool over;           /* what follows is settled */
    int64_t write_us, network_us;
    struct trouble trouble;
};

int sink_start(struct sink *sink, struct trouble *trouble);

/* Whatever still comes, nothing is published: true. False: it is being published or
 * already was, and `over` will tell how that went. */
bool sink_give_up(struct sink *sink);

/* Of one that ended, or was not started. */
void sink_close(struct sink *sink);

/* The end record came; nothing more is put into the ring. */
void sink_finish(struct sink *sink, const struct ending *end);

#endif
