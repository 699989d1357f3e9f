/* A ring of buffers between the thread that speaks to the peer and the one that reads
 * or writes the stream. Neither ever waits for the other's descriptors. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "records.h"

enum { CACHE_LINE = 64 };

/* One data record: header, payload, room for a tag. */
struct slot {
    uint8_t *bytes;
    uint32_t length; /* of the body */
    struct slot *next;
};

struct slots { /* a queue; `free` is used as a stack, so that what is warm is used next */
    struct slot *first, *last;
};

struct ring {
    uint8_t *memory;
    size_t bytes, slot_bytes; /* of all of it; of a slot */
    uint32_t count, chunk;
    struct slot *slot; /* `count`, and spares that are the transport's */
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct slots free, full;
    bool ended;  /* nothing will be added to `full` */
    int wake_fd; /* eventfd: the peer's thread has something to look at */
};

/* How much memory a slot for a data record of `chunk` bytes takes. */
static inline size_t ring_slot_bytes(uint32_t chunk)
{
    size_t bytes = RECORD_BYTES + (size_t)chunk + SEAL_BYTES;
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

/* `memory` is page aligned and zero until used. 0, or -1 with errno. */
int ring_open(struct ring *ring, uint32_t count, uint32_t spares, uint32_t chunk);
void ring_close(struct ring *ring);

void ring_put(struct ring *ring, struct slots *queue, struct slot *slot);
struct slot *ring_take(struct ring *ring, struct slots *queue); /* NULL: none there */

/* Waits for a slot; NULL once there is none and the ring has ended. Adds the time
 * waited to `*waited_us`. */
struct slot *ring_wait(struct ring *ring, struct slots *queue, int64_t *waited_us);

void ring_end(struct ring *ring);

/* Makes the peer's thread look; and its answer that it does. */
void ring_wake(struct ring *ring);
void ring_woken(struct ring *ring);

/* Queues of one thread need no lock. */
void slots_put(struct slots *queue, struct slot *slot);
void slots_push(struct slots *stack, struct slot *slot);
struct slot *slots_take(struct slots *queue);
