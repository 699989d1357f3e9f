/* Shared key, and the handshake of two unauthenticated peers: hello, hello, proof, proof. The
 * sender (the client) sends its proof first. The handshake takes and gives records, without I/O.
 * Records after it are sealed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "records.h"
#include "error.h"

/* Shared secret: the bytes of a file, a descriptor or RDPIPE_KEY, never of argv. */
enum { KEY_LEAST = 16, KEY_MOST = 1024, KEY_DIFFERENT = 8 };

struct key {
    unsigned char bytes[KEY_MOST + 1]; /* the extra byte detects a key that is too long */
    size_t length;
};

/* Read the key. `file` may be NULL and `fd` -1. RDPIPE_KEY is the last resort and is removed from
 * the environment. One newline at the end is ignored. Return 0, or -1 with an error. */
int key_open(struct key *key, const char *file, int fd, struct error *error);

/* Write a key of 32 random bytes, in hex, to a new file that only its owner can read. */
int key_make(const char *file, struct error *error);

void key_close(struct key *key);

enum { WHOLE_HELLO_BYTES = RECORD_BYTES + HELLO_BYTES, SECRET_BYTES = 32 };

/* Both complete hello records, the sender's first. */
struct transcript {
    uint8_t sender[WHOLE_HELLO_BYTES], receiver[WHOLE_HELLO_BYTES];
};

struct handshake {
    const struct key *key; /* not owned */
    int role;
    struct hello mine, theirs;
    struct transcript transcript;
    /* private X25519 key; after the peer's hello the result of the exchange */
    uint8_t secret[SECRET_BYTES];
    enum { HANDSHAKE_HELLO, HANDSHAKE_PROOF, HANDSHAKE_OVER } stage;
    uint8_t answer[CONTROL_BYTES]; /* a record to send */
    bool answers;                  /* `answer` is waiting to be sent */
};

/* Start a handshake. `mine` has no X25519 key yet. The sender's first record is in `answer`. */
int handshake_open(struct handshake *handshake, const struct key *key, const struct hello *mine,
                 struct error *error);

/* Process a record. At HANDSHAKE_OVER the peer is authenticated. Return -1 with an error if the
 * peer is rejected; `answer` then holds the reason to send. */
int handshake_take(struct handshake *handshake, const struct record *record,
                 const uint8_t *body, struct error *error);

/* Replace the private X25519 key in `secret` by the value shared with the owner of the public key
 * `theirs` (RFC 7748). Return 0, or -1, also if that value is zero. */
int handshake_exchange(uint8_t secret[SECRET_BYTES], const uint8_t theirs[PUBLIC_BYTES]);

/* Derive the secret of `role` for one purpose:
 *
 *   HKDF-SHA-256(salt: sender's hello | receiver's hello,
 *                secret: the shared key | the result of the exchange,
 *                info: "rdpipe4 proof sender", for example)
 *
 *   "proof"  shows that its sender has the shared key and saw the same hellos
 *   "seal"   encrypts the records of one direction
 *
 * Without the result of the exchange a recorded handshake gives no way to test a guess of the
 * shared key, and the key decrypts no recorded stream. Return 0, or -1. */
int handshake_derive(uint8_t out[SECRET_BYTES], const struct handshake *handshake,
                     const char *purpose, int role);

/* Parameters agreed by both ends. The tag of a sealed record makes a checksum superfluous. */
uint32_t handshake_chunk(const struct handshake *handshake);
bool handshake_checksum(const struct handshake *handshake);
bool handshake_encrypts(const struct handshake *handshake);

/* Encryption of each record after the proofs: AES-256-GCM if both processors have the instructions,
 * otherwise ChaCha20-Poly1305, with one key per direction:
 *
 *   nonce  lane u32 (1 data, 2 all other records) | counter u64: the number of a data
 *          record; for other records, how many preceded it in this direction
 *   tag    16 bytes, over the header and the body
 *
 * The X25519 keys are fresh, so no key is used twice. A lane has one writer, with an increasing
 * counter. A changed, missing, repeated or reordered record does not open. */
enum seal_lane { LANE_DATA = 1, LANE_CONTROL };

struct seal {
    void *cipher; /* EVP_CIPHER_CTX */
    enum seal_lane lane;
    uint64_t count; /* records so far; counter of LANE_CONTROL */
};

/* The three seals of one end of a stream: sent data, other sent records, received records. A
 * separate thread uses `data`. */
struct seals {
    struct seal data, say, hear;
};

/* Return true if this processor has the AES-GCM instructions. */
bool seal_has_aes(void);

/* Return "encrypted by AES-256-GCM", for example; "" if the stream is plain. */
const char *seal_name(const struct handshake *handshake);

int seals_open(struct seals *seals, const struct handshake *handshake, struct error *error);
void seals_close(struct seals *seals);

/* Seal or open a record in place. `record` is a header and its body; the last SEAL_BYTES of the
 * body are reserved for the tag. Return 0, or -1; on opening, -1 means the record was modified. */
int seal_close_record(struct seal *seal, uint8_t *record, uint64_t counter);
int seal_open_record(struct seal *seal, uint8_t *record, uint64_t counter);
