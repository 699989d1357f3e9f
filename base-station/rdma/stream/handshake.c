/* Handshake and sealed records: see handshake.h. */
#include "handshake.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/random.h>
#if defined(__arm__) || defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

static int other_role(const struct handshake *handshake)
{
    return handshake->role == ROLE_SENDER ? ROLE_RECEIVER : ROLE_SENDER;
}

static uint8_t *hello_of(struct handshake *handshake, int role)
{
    return role == ROLE_SENDER ? handshake->transcript.sender : handshake->transcript.receiver;
}

static int public_of(uint8_t out[PUBLIC_BYTES], const uint8_t secret[SECRET_BYTES])
{
    size_t length = PUBLIC_BYTES;
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, secret, SECRET_BYTES);
    bool good = key && EVP_PKEY_get_raw_public_key(key, out, &length) > 0;
    EVP_PKEY_free(key);
    return good ? 0 : -1;
}

int handshake_exchange(uint8_t secret[SECRET_BYTES], const uint8_t theirs[PUBLIC_BYTES])
{
    size_t length = SECRET_BYTES;
    EVP_PKEY *mine = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, secret, SECRET_BYTES);
    EVP_PKEY *peer = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, theirs, PUBLIC_BYTES);
    EVP_PKEY_CTX *context = mine && peer ? EVP_PKEY_CTX_new(mine, NULL) : NULL;
    /* OpenSSL refuses a result of zero. */
    bool good = context && EVP_PKEY_derive_init(context) > 0 &&
                EVP_PKEY_derive_set_peer(context, peer) > 0 &&
                EVP_PKEY_derive(context, secret, &length) > 0;
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(peer);
    EVP_PKEY_free(mine);
    return good ? 0 : -1;
}

int handshake_derive(uint8_t out[SECRET_BYTES], const struct handshake *handshake,
                     const char *purpose, int role)
{
    const struct key *key = handshake->key;
    const unsigned char *salt = (const unsigned char *)&handshake->transcript;
    unsigned char secret[KEY_MOST + SECRET_BYTES];
    char info[32];
    size_t length = SECRET_BYTES;
    int info_length = snprintf(info, sizeof info, "rdpipe4 %s %s", purpose,
                               role == ROLE_SENDER ? "sender" : "receiver");
    memcpy(secret, key->bytes, key->length);
    memcpy(secret + key->length, handshake->secret, SECRET_BYTES);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
    bool good = context && EVP_PKEY_derive_init(context) > 0 &&
                EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) > 0 &&
                EVP_PKEY_CTX_set1_hkdf_salt(context, salt, sizeof(struct transcript)) > 0 &&
                EVP_PKEY_CTX_set1_hkdf_key(context, secret,
                                           (int)key->length + SECRET_BYTES) > 0 &&
                EVP_PKEY_CTX_add1_hkdf_info(context, (unsigned char *)info, info_length) > 0 &&
                EVP_PKEY_derive(context, out, &length) > 0;
    EVP_PKEY_CTX_free(context);
    explicit_bzero(secret, sizeof secret);
    return good ? 0 : -1;
}

int handshake_open(struct handshake *handshake, const struct key *key, const struct hello *mine,
                   struct error *error)
{
    *handshake = (struct handshake){.key = key, .role = mine->role, .mine = *mine};
    if (getrandom(handshake->secret, SECRET_BYTES, 0) != SECRET_BYTES)
        return fault(error, "no random bytes: %m");
    if (public_of(handshake->mine.public, handshake->secret) < 0)
        return fault(error, "OpenSSL cannot make an X25519 key");
    uint8_t *whole = hello_of(handshake, mine->role);
    record_put(whole, &(struct record){RECORD_HELLO, HELLO_BYTES, 0});
    hello_put(whole + RECORD_BYTES, &handshake->mine);
    memcpy(handshake->answer, whole, WHOLE_HELLO_BYTES);
    handshake->answers = mine->role == ROLE_SENDER;
    return 0;
}

/* Reject the peer, for a reason that both ends report. */
static int refuse(struct handshake *handshake, struct error *error, const char *why)
{
    size_t length = strnlen(why, ABORT_BYTES);
    record_put(handshake->answer, &(struct record){RECORD_ABORT, (uint32_t)length, EXIT_FAULT});
    memcpy(handshake->answer + RECORD_BYTES, why, length);
    handshake->answers = true;
    return fault(error, "%s", why);
}

static int give_proof(struct handshake *handshake, struct error *error)
{
    record_put(handshake->answer, &(struct record){RECORD_PROOF, PROOF_BYTES, 0});
    if (handshake_derive(handshake->answer + RECORD_BYTES, handshake, "proof", handshake->role) < 0)
        return fault(error, "OpenSSL cannot make a proof");
    handshake->answers = true;
    return 0;
}

static int refuse_version(struct handshake *handshake, struct error *error)
{
    char why[120];
    bool sender = handshake->role == ROLE_SENDER;
    const struct hello *mine = &handshake->mine, *theirs = &handshake->theirs;
    snprintf(why, sizeof why,
             "the sender speaks version %u of the protocol, the receiver version %u: install the "
             "same release on both", (sender ? mine : theirs)->version,
             (sender ? theirs : mine)->version);
    return refuse(handshake, error, why);
}

static int take_hello(struct handshake *handshake, const struct record *record,
                      const uint8_t *body, struct error *error)
{
    uint8_t *whole = hello_of(handshake, other_role(handshake));
    const struct hello *mine = &handshake->mine, *theirs = &handshake->theirs;
    const char *why = hello_get(&handshake->theirs, body);
    if (theirs->version != RECORDS_VERSION)
        return refuse_version(handshake, error);
    if (!why && record->length != HELLO_BYTES)
        why = "a hello of a length that this version does not have";
    else if (!why && theirs->role == mine->role)
        why = "both ends have the same role: one must be rdsend, the other rdrecv";
    else if (!why && theirs->transport != mine->transport)
        why = "the transports differ";
    else if (!why && handshake_exchange(handshake->secret, theirs->public) < 0)
        why = "a hello with an invalid X25519 key";
    if (why)
        return refuse(handshake, error, why);
    record_put(whole, record);
    memcpy(whole + RECORD_BYTES, body, HELLO_BYTES);
    handshake->stage = HANDSHAKE_PROOF;
    if (handshake->role == ROLE_SENDER)
        return give_proof(handshake, error);
    handshake->answers = true; /* with its own hello */
    return 0;
}

static int take_proof(struct handshake *handshake, const uint8_t *body, struct error *error)
{
    uint8_t right[PROOF_BYTES];
    if (handshake_derive(right, handshake, "proof", other_role(handshake)) < 0 ||
        CRYPTO_memcmp(body, right, PROOF_BYTES) != 0)
        return refuse(handshake, error, "the keys differ: check that both have the same key");
    handshake->stage = HANDSHAKE_OVER;
    return handshake->role == ROLE_SENDER ? 0 : give_proof(handshake, error);
}

int handshake_take(struct handshake *handshake, const struct record *record,
                   const uint8_t *body, struct error *error)
{
    if (record->type == RECORD_ABORT) {
        char text[ABORT_BYTES + 1], ours[40] = "";
        shown(text, sizeof text, body, record->length);
        if (handshake->stage == HANDSHAKE_HELLO) /* perhaps for its version */
            snprintf(ours, sizeof ours, " (this one speaks version %d)", RECORDS_VERSION);
        error->heard |= !error->status;
        return fault(error, "refused by the other end%s: %s", ours, text);
    }
    if (handshake->stage == HANDSHAKE_HELLO && record->type == RECORD_HELLO)
        return take_hello(handshake, record, body, error);
    if (handshake->stage == HANDSHAKE_PROOF && record->type == RECORD_PROOF)
        return take_proof(handshake, body, error);
    return refuse(handshake, error, "a record out of turn before the proof");
}

uint32_t handshake_chunk(const struct handshake *handshake)
{
    return MIN(handshake->mine.chunk, handshake->theirs.chunk);
}

bool handshake_checksum(const struct handshake *handshake)
{
    return handshake->mine.checksum && handshake->theirs.checksum && !handshake_encrypts(handshake);
}

bool handshake_encrypts(const struct handshake *handshake)
{
    return handshake->mine.protection || handshake->theirs.protection;
}

static bool both_aes(const struct handshake *handshake)
{
    return handshake->mine.aes && handshake->theirs.aes;
}

enum { IV_BYTES = 12 };

bool seal_has_aes(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
    return (getauxval(AT_HWCAP) & (HWCAP_AES | HWCAP_PMULL)) == (HWCAP_AES | HWCAP_PMULL);
#elif defined(__arm__)
    return getauxval(AT_HWCAP2) & HWCAP2_AES;
#else
    return false;
#endif
}

const char *seal_name(const struct handshake *handshake)
{
    if (!handshake_encrypts(handshake))
        return "";
    return both_aes(handshake) ? "encrypted by AES-256-GCM" : "encrypted by ChaCha20-Poly1305";
}

static int seal_open(struct seal *seal, const struct handshake *handshake, int role,
                     enum seal_lane lane)
{
    uint8_t secret[SECRET_BYTES];
    *seal = (struct seal){.cipher = EVP_CIPHER_CTX_new(), .lane = lane};
    int good = seal->cipher && handshake_derive(secret, handshake, "seal", role) == 0 &&
               EVP_CipherInit_ex(seal->cipher,
                                 both_aes(handshake) ? EVP_aes_256_gcm()
                                                      : EVP_chacha20_poly1305(),
                                 NULL, secret, NULL, 1);
    explicit_bzero(secret, sizeof secret);
    return good ? 0 : -1;
}

int seals_open(struct seals *seals, const struct handshake *handshake, struct error *error)
{
    if (seal_open(&seals->data, handshake, ROLE_SENDER, LANE_DATA) == 0 &&
        seal_open(&seals->say, handshake, handshake->role, LANE_CONTROL) == 0 &&
        seal_open(&seals->hear, handshake, other_role(handshake), LANE_CONTROL) == 0)
        return 0;
    return fault(error, "OpenSSL cannot encrypt");
}

void seals_close(struct seals *seals)
{
    EVP_CIPHER_CTX_free(seals->data.cipher);
    EVP_CIPHER_CTX_free(seals->say.cipher);
    EVP_CIPHER_CTX_free(seals->hear.cipher);
    *seals = (struct seals){.data = {.cipher = NULL}};
}

/* Encrypt or decrypt everything but the tag, in place. Return the position of the tag, or NULL. */
static uint8_t *pass(struct seal *seal, uint8_t *record, uint64_t counter, int sealing)
{
    struct record header;
    uint8_t iv[IV_BYTES] = {(uint8_t)seal->lane}, *body = record + RECORD_BYTES;
    int done;
    for (int i = 0; i < 8; i++)
        iv[4 + i] = (uint8_t)(counter >> 8 * i);
    if (record_get(&header, record, CHUNK_MOST + SEAL_BYTES) || header.length < SEAL_BYTES)
        return NULL;
    int length = (int)header.length - SEAL_BYTES;
    bool good = EVP_CipherInit_ex(seal->cipher, NULL, NULL, NULL, iv, sealing) &&
                EVP_CipherUpdate(seal->cipher, NULL, &done, record, RECORD_BYTES) &&
                (!length || EVP_CipherUpdate(seal->cipher, body, &done, body, length));
    return good ? body + length : NULL;
}

int seal_close_record(struct seal *seal, uint8_t *record, uint64_t counter)
{
    uint8_t none[SEAL_BYTES], *tag = pass(seal, record, counter, 1);
    int done;
    if (!tag || !EVP_CipherFinal_ex(seal->cipher, none, &done) ||
        !EVP_CIPHER_CTX_ctrl(seal->cipher, EVP_CTRL_AEAD_GET_TAG, SEAL_BYTES, tag))
        return -1;
    return 0;
}

int seal_open_record(struct seal *seal, uint8_t *record, uint64_t counter)
{
    uint8_t none[SEAL_BYTES], *tag = pass(seal, record, counter, 0);
    int done;
    if (!tag || !EVP_CIPHER_CTX_ctrl(seal->cipher, EVP_CTRL_AEAD_SET_TAG, SEAL_BYTES, tag))
        return -1;
    return EVP_CipherFinal_ex(seal->cipher, none, &done) > 0 ? 0 : -1;
}
