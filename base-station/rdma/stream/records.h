/* Protocol of the two ends, the same over TCP and over RDMA. Over RDMA one message is one record.
 * All numbers are little-endian.
 *
 *   header, 16 bytes
 *     0  u16  0x4452 ("RD")
 *     2  u8   type
 *     3  u8   zero
 *     4  u32  length of the body
 *     8  u64  number
 *
 *   type         number               body
 *   1 hello      0                    48 in version 4: version u16, role u8 (1 sender, 2
 *                                     receiver), transport u8, protection u8 (0 plain,
 *                                     1 encrypted), checksum u8, aes u8 (1: the
 *                                     processor has the instructions), zero u8,
 *                                     chunk u32, credits u32, X25519 key 32
 *   2 proof      0                    32: see handshake.h
 *   3 data       sequence from 0      1 to chunk bytes
 *   4 credit     data records allowed in all
 *   5 heartbeat  records sent so far: a sender's data and end records; a receiver's
 *                credits, and 1 for its done
 *   6 end        data records in all  16: total u64, checksum u64
 *   7 done       data records in all  16: total u64, synced u8, zero 7
 *   8 bye        0
 *   9 abort      status               0 to 240 bytes of text
 *
 *   sender    hello      proof              data ... data  end         bye
 *   receiver       hello       proof credit   credit ...       done
 *
 * The stream is encrypted if one of the hellos asks for it; the proofs cover both hellos. Then each
 * record from the credit on ends with a tag of 16 bytes: see handshake.h.
 *
 * A credit is given only after the buffer was posted again. Heartbeats and aborts may be sent at
 * any time after the proof; an abort also instead of a proof.
 *
 * Every wait has a limit:
 *
 *   the peer's hello and proof       half of --timeout, at least 5 s (connect.h); for the
 *                                    sender the rest of --connect-timeout (connect.c)
 *   any byte of the peer             --timeout
 *   the rest of a started record     --timeout, while RATE_LEAST bytes a second arrive
 *   a record a heartbeat announced   0: it must have arrived
 *   from end to done                 --finish-timeout
 *   from done to bye                 FINISH_MOST_MS
 *   credits and data                 --idle-timeout (they depend on other programs) */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RECORDS_VERSION = 4,
    RECORD_BYTES = 16,
    HELLO_BYTES = 48,
    PROOF_BYTES = 32,
    PUBLIC_BYTES = 32,
    END_BYTES = 16,
    SEAL_BYTES = 16,
    ABORT_BYTES = 240,
    /* longest record other than data */
    CONTROL_BYTES = RECORD_BYTES + ABORT_BYTES + SEAL_BYTES,
    CHUNK_LEAST = 4096,
    CHUNK_MOST = 16 << 20,
    CREDITS_MOST = 1024,
};

enum record_type {
    RECORD_HELLO = 1,
    RECORD_PROOF,
    RECORD_DATA,
    RECORD_CREDIT,
    RECORD_HEARTBEAT,
    RECORD_END,
    RECORD_DONE,
    RECORD_BYE,
    RECORD_ABORT,
};

enum { ROLE_SENDER = 1, ROLE_RECEIVER = 2 };
enum { TRANSPORT_TCP = 1, TRANSPORT_RDMA = 2 };
/* PROTECT_DEFAULT, never sent in a hello: the protection depends on the connection. */
enum protection { PROTECT_NOT, PROTECT_ENCRYPT, PROTECT_DEFAULT };
enum { CHECKSUM_NONE = 0, CHECKSUM_XXH3 = 1 };

struct record {
    uint8_t type;
    uint32_t length;
    uint64_t number;
};

struct hello {
    uint16_t version;
    uint8_t role, transport, protection, checksum, aes;
    uint32_t chunk, credits;
    uint8_t public[PUBLIC_BYTES]; /* X25519 key, fresh for each connection */
};

/* Body of end (value = checksum) and of done (value = 1 if synced). */
struct ending {
    uint64_t total, value;
};

void record_put(uint8_t out[RECORD_BYTES], const struct record *record);

#define RECORD_LENGTH_WRONG "a record of a length that its type does not have"

/* Decode a header. `data_most` is the largest data body that fits here, 0 before data is allowed.
 * Return NULL, or a description of the error. */
const char *record_get(struct record *record, const uint8_t in[RECORD_BYTES], uint32_t data_most);

/* Return true if the body's length, without its tag, fits the record type. */
bool record_fits(const struct record *record);

void hello_put(uint8_t out[HELLO_BYTES], const struct hello *hello);

/* Decode a hello. Accept any version; of another version read only the version number. */
const char *hello_get(struct hello *hello, const uint8_t in[HELLO_BYTES]);

void ending_put(uint8_t out[END_BYTES], const struct ending *ending);
void ending_get(struct ending *ending, const uint8_t in[END_BYTES]);

/* Ring of buffers between the thread of the peer connection and the thread that reads or writes the
 * stream. Neither thread waits for the other's descriptors. */

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
