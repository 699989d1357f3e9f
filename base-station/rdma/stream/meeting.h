/* Two strangers become sure of each other: hello, hello, proof, proof. The sender (the
 * client) proves first. Records in, records out; no I/O. */
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
bool meeting_aes(const struct meeting *meeting);
