/* Where the stream comes from: a thread that fills the ring's slots and makes a data
 * record of each. It alone touches the input. */
#pragma once

#include <time.h>

#include "ring.h"

struct source {
    /* Set before it starts; not owned. */
    struct worker *worker;
    int fd;
    const char *name; /* for messages */
    bool whole;   /* a file by name: its size must not change while it is read */
    int64_t size; /* of a regular file; -1 = not known */
    uint64_t rate; /* bytes a second; 0 = no limit */

    struct timespec written; /* the file, before it is read */
    double due_us;           /* when what was read so far may have gone out */
    uint64_t checksum;       /* settled when the worker is over */
};

int source_start(struct source *source, struct trouble *trouble);
