/* That a peer has the shared secret, and both saw the same hellos:
 * HMAC-SHA-256(secret, label | sender's hello record | receiver's hello record). */
#ifndef PROOF_H
#define PROOF_H

#include <stdbool.h>

#include "key.h"
#include "records.h"

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

#endif
