/* What the two ends say to each other, over TCP and over RDMA alike. Over RDMA one
 * message is one record. All numbers are little-endian.
 *
 *   header, 16 bytes
 *     0  u16  0x4452 ("RD")
 *     2  u8   type
 *     3  u8   zero
 *     4  u32  length of the body
 *     8  u64  number
 *
 *   type         number               body
 *   1 hello      0                    48 in version 1: version u16, role u8 (1 sender, 2
 *                                     receiver), transport u8, cipher u8, checksum u8,
 *                                     zero u16, chunk u32, credits u32, nonce 32
 *   2 proof      0                    32: HMAC-SHA-256, see proof.h
 *   3 data       sequence from 0      1 to chunk bytes, and a tag of 16 if sealed
 *   4 credit     data records that may have been sent in all
 *   5 heartbeat  0
 *   6 end        data records in all  16: total u64, checksum u64, a tag if sealed
 *   7 done       data records in all  16: total u64, synced u8, zero 7, a tag if sealed
 *   8 bye        0
 *   9 abort      status               0 to 240 bytes of text
 *
 *   sender    hello      proof              data ... data  end         bye
 *   receiver       hello       proof credit   credit ...       done
 *
 * A credit is given only after the buffer was posted again. Heartbeats and aborts may
 * come at any time once the proof is through; an abort also instead of a proof.
 */
#ifndef RECORDS_H
#define RECORDS_H

#include <stddef.h>
#include <stdint.h>

enum {
    RECORDS_VERSION = 1,
    RECORD_BYTES = 16,
    HELLO_BYTES = 48,
    PROOF_BYTES = 32,
    NONCE_BYTES = 32,
    END_BYTES = 16,
    SEAL_BYTES = 16,
    ABORT_BYTES = 240,
    CONTROL_BYTES = RECORD_BYTES + ABORT_BYTES, /* the longest that is not data */
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
enum { CIPHER_NONE = 0, CIPHER_AES_256_GCM = 1 };
enum { CHECKSUM_NONE = 0, CHECKSUM_XXH64 = 1 };

struct record {
    uint8_t type;
    uint32_t length;
    uint64_t number;
};

struct hello {
    uint16_t version;
    uint8_t role, transport, cipher, checksum;
    uint32_t chunk, credits;
    uint8_t nonce[NONCE_BYTES];
};

/* The body of end (value = checksum) and of done (value = 1 if synced). */
struct ending {
    uint64_t total, value;
};

void record_put(uint8_t out[RECORD_BYTES], const struct record *record);

/* Reads a header. `data_most` is the greatest length of data that fits here, 0 before
 * data is allowed. Returns NULL, or what is wrong with it. */
const char *record_get(struct record *record, const uint8_t in[RECORD_BYTES],
                       uint32_t data_most);

void hello_put(uint8_t out[HELLO_BYTES], const struct hello *hello);

/* Takes any version, and nothing but the version of one that is not ours. */
const char *hello_get(struct hello *hello, const uint8_t in[HELLO_BYTES]);

void ending_put(uint8_t out[END_BYTES], const struct ending *ending);
void ending_get(struct ending *ending, const uint8_t in[END_BYTES]);

#endif
