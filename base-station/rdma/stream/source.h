/* Where the stream comes from: a thread that fills the ring's slots and makes a data
 * record of each. It alone touches the input. */
#ifndef SOURCE_H
#define SOURCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "ring.h"
#include "seal.h"
#include "trouble.h"

struct source {
    /* Set before it starts; not owned. */
    int fd;
    const char *name; /* for messages */
    struct ring *ring;
    struct seal *seal; /* NULL = plain */
    bool checksummed;
    bool whole;   /* a file by name: its size must not change while it is read */
    int64_t size; /* of a regular file; -1 = not known */
    uint64_t rate; /* bytes a second; 0 = no limit */

    pthread_t thread;
    bool started;
    struct timespec written; /* the file, before it is read */
    atomic_uint_fast64_t total; /* may be read at any time */
    atomic_bool over;           /* what follows is settled */
    uint64_t count, checksum;
    double due_us;               /* when what was read so far may have gone out */
    int64_t read_us, network_us; /* time spent waiting */
    struct trouble trouble;
};

int source_start(struct source *source, struct trouble *trouble);

/* Waits for the thread's end, if it is about to end: true. Else it is let go: not to be
 * called again. */
bool source_join(struct source *source);

#endif
