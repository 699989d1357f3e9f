/* Ring of buffers between the thread of the peer connection and the thread that reads or writes the
 * stream. Neither thread waits for the other's descriptors. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "records.h"

enum { CACHE_LINE = 64 };

/* One data record: header, payload, space for a tag. */
struct slot {
    uint8_t *bytes;
    uint32_t length; /* of the body */
    struct slot *next;
};

/* a queue; `free` is used as a stack, to reuse the slot still in the cache */
struct slots {
    struct slot *first, *last;
};

struct ring {
    uint8_t *memory;
    size_t bytes, slot_bytes; /* size of `memory`; size of one slot */
    uint32_t count, chunk;
    struct slot *slot; /* `count` slots, and spares for the transport */
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct slots free, full;
    bool ended;  /* no more slots will be added to `full` */
    int wake_fd; /* eventfd: wakes the peer's thread */
};

/* Return the memory that a slot for a data record of `chunk` bytes takes. */
static inline size_t ring_slot_bytes(uint32_t chunk)
{
    size_t bytes = RECORD_BYTES + (size_t)chunk + SEAL_BYTES;
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

/* Allocate the ring. `memory` is page aligned, and zero until used. Return 0, or -1 with errno. */
int ring_open(struct ring *ring, uint32_t count, uint32_t spares, uint32_t chunk);
void ring_close(struct ring *ring);

void ring_put(struct ring *ring, struct slots *queue, struct slot *slot);
struct slot *ring_take(struct ring *ring, struct slots *queue); /* NULL: empty */

/* Wait for a slot. Return NULL once the queue is empty and the ring has ended. Add the time waited
 * to `*waited_us`. */
struct slot *ring_wait(struct ring *ring, struct slots *queue, int64_t *waited_us);

void ring_end(struct ring *ring);

/* Wake the peer's thread; acknowledge the wake-up. */
void ring_wake(struct ring *ring);
void ring_woken(struct ring *ring);

/* Unlocked queue operations, for queues used by a single thread. */
void slots_put(struct slots *queue, struct slot *slot);
void slots_push(struct slots *stack, struct slot *slot);
struct slot *slots_take(struct slots *queue);
