/* --encrypt: AES-256-GCM. HKDF-SHA-256 makes one key for each direction from the secret
 * and the transcript, whose nonces are fresh; a record's number is its nonce, its header
 * is bound to it. A direction seals each number once: data 0..n-1, end n; done. */
#ifndef SEAL_H
#define SEAL_H

#include "proof.h"
#include "trouble.h"

struct seal {
    void *cipher; /* EVP_CIPHER_CTX */
};

/* `role` is the one who seals. 0, or -1. */
int seal_open(struct seal *seal, const struct key *key, int role,
              const struct transcript *transcript);

/* What `role` seals with, and what its peer does. 0, or -1 with a trouble. */
int seals_open(struct seal *mine, struct seal *theirs, const struct key *key, int role,
               const struct transcript *transcript, struct trouble *trouble);

/* `record` is a header and its body; the body's last SEAL_BYTES are the tag's room.
 * Both work in place. 0, or -1: for unsealing, somebody changed it. */
int seal_close_record(struct seal *seal, uint8_t *record);
int seal_open_record(struct seal *seal, uint8_t *record);

void seal_close(struct seal *seal);

#endif
