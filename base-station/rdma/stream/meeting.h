/* Two strangers become sure of each other: hello, hello, proof, proof. The sender (the
 * client) proves first. Records in, records out; no I/O. What is said from then on is
 * sealed. */
#pragma once

#include <stdbool.h>

#include "key.h"
#include "records.h"
#include "trouble.h"

/* That a peer has the shared secret, and both saw the same hellos:
 * HMAC-SHA-256(secret, label | sender's hello record | receiver's hello record). */
enum { WHOLE_HELLO_BYTES = RECORD_BYTES + HELLO_BYTES };

/* Both hellos, whole, the sender's first. */
struct transcript {
    uint8_t sender[WHOLE_HELLO_BYTES], receiver[WHOLE_HELLO_BYTES];
};

/* The proof that `role` gives. 0, or -1. */
int proof_make(uint8_t out[PROOF_BYTES], const struct key *key, int role,
               const struct transcript *transcript);

/* Compared in constant time. */
bool proof_holds(const uint8_t in[PROOF_BYTES], const struct key *key, int role,
                 const struct transcript *transcript);

struct meeting {
    const struct key *key; /* not owned */
    int role;
    struct hello mine, theirs;
    struct transcript transcript;
    enum { MEETING_HELLO, MEETING_PROOF, MEETING_OVER } stage;
    uint8_t answer[CONTROL_BYTES]; /* a record */
    bool answers;                  /* it is to be sent */
};

/* Begins one; `mine` without its nonce. A sender's answer is what it says first. */
int meeting_open(struct meeting *meeting, const struct key *key, const struct hello *mine,
                 struct trouble *trouble);

/* Takes a record. At MEETING_OVER the peer is proven. -1 with a trouble: the peer is none
 * for us, which an answer tells it. */
int meeting_take(struct meeting *meeting, const struct record *record,
                 const uint8_t *body, struct trouble *trouble);

/* What both agreed on. A tag on each record makes a checksum superfluous. */
uint32_t meeting_chunk(const struct meeting *meeting);
bool meeting_checksum(const struct meeting *meeting);
enum protection meeting_protection(const struct meeting *meeting);

/* Protects each record once the proofs are through. AES-256-GCM where both processors have
 * the instructions, else ChaCha20-Poly1305. HKDF-SHA-256 makes one key for each direction:
 *
 *   key    HKDF(salt: sender's hello | receiver's hello, secret: the shared one,
 *               info: "rdpipe3 seal sender" or "rdpipe3 seal receiver")
 *   nonce  lane u32 (1 data, 2 all else) | counter u64: of data its number, of all else
 *          how many there were before it in this direction
 *   tag    16 bytes, over the header and the body; encrypted, the body is sealed; signed,
 *          it is bound as the header is and stays readable
 *
 * The hellos' nonces are fresh, so that no key comes twice; a lane has one writer, which
 * counts up. A record that was changed, left out, repeated or moved does not open. */
enum seal_lane { LANE_DATA = 1, LANE_CONTROL };

struct seal {
    void *cipher; /* EVP_CIPHER_CTX */
    enum seal_lane lane;
    bool signs; /* and does not encrypt */
    uint64_t count; /* of records so far; LANE_CONTROL's counter */
};

/* The three that an end of a stream needs: for its data, for what it says beside, for
 * what it hears. A thread of its own uses `data`. */
struct seals {
    struct seal data, say, hear;
};

enum { SEAL_KEY_BYTES = 32 };

/* The key of what `role` says. 0, or -1. */
int seal_key(uint8_t out[SEAL_KEY_BYTES], const struct meeting *meeting, int role);

/* Has this processor the instructions for AES-GCM? */
bool seal_has_aes(void);

/* What is agreed on, for a person: "encrypted by AES-256-GCM", "" where it is plain. */
const char *seal_name(const struct meeting *meeting);

int seals_open(struct seals *seals, const struct meeting *meeting,
               struct trouble *trouble);
void seals_close(struct seals *seals);

/* `record` is a header and its body; the body's last SEAL_BYTES are the tag's room.
 * Both work in place. 0, or -1: for unsealing, somebody changed it. */
int seal_close_record(struct seal *seal, uint8_t *record, uint64_t counter);
int seal_open_record(struct seal *seal, uint8_t *record, uint64_t counter);
