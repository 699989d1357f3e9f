/* Records: encoding, decoding, and the ring of their buffers. See records.h. */
#include "records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "descriptors.h"
#include "error.h"

enum { MAGIC = 0x4452 };

static void put(uint8_t *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *in, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)in[i] << 8 * i;
    return value;
}

void record_put(uint8_t out[RECORD_BYTES], const struct record *record)
{
    put(out, MAGIC, 2);
    put(out + 2, record->type, 1);
    put(out + 3, 0, 1);
    put(out + 4, record->length, 4);
    put(out + 8, record->number, 8);
}

static const struct { uint32_t least, most; } bodies[] = {
    /* another version's hello may be longer */
    [RECORD_HELLO] = {HELLO_BYTES, ABORT_BYTES},
    [RECORD_PROOF] = {PROOF_BYTES, PROOF_BYTES},
    [RECORD_DATA] = {1, 0},
    [RECORD_END] = {END_BYTES, END_BYTES},
    [RECORD_DONE] = {END_BYTES, END_BYTES},
    [RECORD_ABORT] = {0, ABORT_BYTES}, /* the other types have no body */
};

const char *record_get(struct record *record, const uint8_t in[RECORD_BYTES], uint32_t data_most)
{
    if (get(in, 2) != MAGIC || in[3] != 0)
        return "it does not speak rdsend's protocol";
    uint8_t type = in[2];
    if (type < RECORD_HELLO || type > RECORD_ABORT)
        return "a record of a type that this version does not know";
    uint32_t length = (uint32_t)get(in + 4, 4);
    uint32_t most = bodies[type].most + (type > RECORD_DATA ? SEAL_BYTES : 0);
    if (length < bodies[type].least || length > (type == RECORD_DATA ? data_most : most))
        return RECORD_LENGTH_WRONG;
    *record = (struct record){type, length, get(in + 8, 8)};
    return NULL;
}

bool record_fits(const struct record *record)
{
    return record->length >= bodies[record->type].least &&
           record->length <= bodies[record->type].most;
}

void hello_put(uint8_t out[HELLO_BYTES], const struct hello *hello)
{
    put(out, hello->version, 2);
    put(out + 2, hello->role, 1);
    put(out + 3, hello->transport, 1);
    put(out + 4, hello->protection, 1);
    put(out + 5, hello->checksum, 1);
    put(out + 6, hello->aes, 1);
    put(out + 7, 0, 1);
    put(out + 8, hello->chunk, 4);
    put(out + 12, hello->credits, 4);
    memcpy(out + 16, hello->public, PUBLIC_BYTES);
}

const char *hello_get(struct hello *hello, const uint8_t in[HELLO_BYTES])
{
    *hello = (struct hello){
        .version = (uint16_t)get(in, 2),
        .role = in[2],
        .transport = in[3],
        .protection = in[4],
        .checksum = in[5],
        .aes = in[6],
        .chunk = (uint32_t)get(in + 8, 4),
        .credits = (uint32_t)get(in + 12, 4),
    };
    memcpy(hello->public, in + 16, PUBLIC_BYTES);
    if (hello->version != RECORDS_VERSION)
        return NULL;
    if (hello->role < ROLE_SENDER || hello->role > ROLE_RECEIVER)
        return "a hello of neither a sender nor a receiver";
    if (hello->transport < TRANSPORT_TCP || hello->transport > TRANSPORT_RDMA)
        return "a hello with an unknown transport";
    if (hello->protection > PROTECT_ENCRYPT || hello->checksum > CHECKSUM_XXH3 || hello->aes > 1)
        return "a hello with an unknown protection or checksum";
    if (hello->chunk < CHUNK_LEAST || hello->chunk > CHUNK_MOST)
        return "a hello with a chunk out of bounds";
    if (hello->credits < 1 || hello->credits > CREDITS_MOST)
        return "a hello with a number of credits out of bounds";
    return NULL;
}

void ending_put(uint8_t out[END_BYTES], const struct ending *ending)
{
    put(out, ending->total, 8);
    put(out + 8, ending->value, 8);
}

void ending_get(struct ending *ending, const uint8_t in[END_BYTES])
{
    *ending = (struct ending){get(in, 8), get(in + 8, 8)};
}

/* Ring */

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
