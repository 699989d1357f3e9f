/* That a peer has the shared secret: see proof.h. */
#include "proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

enum { LABEL_BYTES = 16 };

int proof_make(uint8_t out[PROOF_BYTES], const struct key *key, int role,
               const struct transcript *transcript)
{
    uint8_t text[LABEL_BYTES + 2 * WHOLE_HELLO_BYTES] = {0};
    unsigned int length = 0;
    const char *label = role == ROLE_SENDER ? "rdpipe2 sender" : "rdpipe2 receiver";
    memcpy(text, label, strlen(label));
    memcpy(text + LABEL_BYTES, transcript->sender, WHOLE_HELLO_BYTES);
    memcpy(text + LABEL_BYTES + WHOLE_HELLO_BYTES, transcript->receiver,
           WHOLE_HELLO_BYTES);
    if (!HMAC(EVP_sha256(), key->bytes, (int)key->length, text, sizeof text, out,
              &length))
        return -1;
    return length == PROOF_BYTES ? 0 : -1;
}

bool proof_holds(const uint8_t in[PROOF_BYTES], const struct key *key, int role,
                 const struct transcript *transcript)
{
    uint8_t right[PROOF_BYTES];
    return proof_make(right, key, role, transcript) == 0 &&
           CRYPTO_memcmp(in, right, PROOF_BYTES) == 0;
}
