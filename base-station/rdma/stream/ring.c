/* Ring of buffers between two threads: see ring.h. */
#include "ring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "descriptors.h"
#include "error.h"

void slots_put(struct slots *queue, struct slot *slot)
{
    slot->next = NULL;
    if (queue->last)
        queue->last->next = slot;
    else
        queue->first = slot;
    queue->last = slot;
}

struct slot *slots_take(struct slots *queue)
{
    struct slot *slot = queue->first;
    if (!slot)
        return NULL;
    queue->first = slot->next;
    if (!queue->first)
        queue->last = NULL;
    slot->next = NULL;
    return slot;
}

void slots_push(struct slots *queue, struct slot *slot)
{
    slot->next = queue->first;
    queue->first = slot;
    if (!queue->last)
        queue->last = slot;
}

int ring_open(struct ring *ring, uint32_t count, uint32_t spares, uint32_t chunk)
{
    *ring = (struct ring){.count = count, .chunk = chunk, .wake_fd = -1,
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .change = PTHREAD_COND_INITIALIZER};
    ring->slot_bytes = ring_slot_bytes(chunk);
    size_t slots = (size_t)count + spares;
    errno = ENOMEM; /* 1024 credits of 16 MiB overflow 32 bits */
    if (__builtin_mul_overflow(ring->slot_bytes, slots, &ring->bytes) ||
        !(ring->slot = calloc(slots, sizeof *ring->slot)))
        return -1;
    void *memory = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    ring->memory = memory;
    for (uint32_t i = 0; i < slots; i++) {
        ring->slot[i].bytes = ring->memory + ring->slot_bytes * i;
        if (i < count)
            slots_put(&ring->free, &ring->slot[i]);
    }
    ring->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return ring->wake_fd < 0 ? -1 : 0;
}

void ring_close(struct ring *ring)
{
    if (ring->slot) /* otherwise never opened */
        shut(&ring->wake_fd);
    if (ring->memory)
        munmap(ring->memory, ring->bytes);
    free(ring->slot);
    *ring = (struct ring){.wake_fd = -1};
}

void ring_put(struct ring *ring, struct slots *queue, struct slot *slot)
{
    pthread_mutex_lock(&ring->lock);
    if (queue == &ring->free)
        slots_push(queue, slot);
    else
        slots_put(queue, slot);
    pthread_cond_signal(&ring->change);
    pthread_mutex_unlock(&ring->lock);
}

struct slot *ring_take(struct ring *ring, struct slots *queue)
{
    pthread_mutex_lock(&ring->lock);
    struct slot *slot = slots_take(queue);
    pthread_mutex_unlock(&ring->lock);
    return slot;
}

struct slot *ring_wait(struct ring *ring, struct slots *queue, int64_t *waited_us)
{
    struct slot *slot;
    pthread_mutex_lock(&ring->lock);
    int64_t since = 0;
    while (!(slot = slots_take(queue)) && !ring->ended) {
        if (!since)
            since = now_us();
        pthread_cond_wait(&ring->change, &ring->lock);
    }
    pthread_mutex_unlock(&ring->lock);
    if (since)
        *waited_us += now_us() - since;
    return slot;
}

void ring_end(struct ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->ended = true;
    pthread_cond_broadcast(&ring->change);
    pthread_mutex_unlock(&ring->lock);
}

void ring_wake(struct ring *ring)
{
    eventfd_write(ring->wake_fd, 1);
}

void ring_woken(struct ring *ring)
{
    eventfd_t count;
    eventfd_read(ring->wake_fd, &count);
}
