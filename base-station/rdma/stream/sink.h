/* Where the stream is written: a thread that empties the ring's slots. It alone touches
 * the output, and judges whether what came is what was sent. */
#pragma once

#include "ring.h"
#include "target.h"

struct sink {
    /* Set before it starts; not owned. */
    struct worker *worker;
    struct target *target;

    struct ending end; /* set before sink_finish */
    bool end_known;
    atomic_int fd;   /* being written; -1 before and after */
    atomic_int fate; /* see sink_give_up */
};

int sink_start(struct sink *sink, struct trouble *trouble);

/* Whatever still comes, nothing is published: true. False: it is being published or
 * already was, and the worker's `over` will tell how that went. */
bool sink_give_up(struct sink *sink);

/* The end record came; nothing more is put into the ring. */
void sink_finish(struct sink *sink, const struct ending *end);
