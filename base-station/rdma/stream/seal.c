/* A tag on each record: see seal.h. */
#include "seal.h"

#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <string.h>
#if defined(__arm__) || defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

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

const char *seal_name(const struct meeting *meeting)
{
    static const char *const names[][2] = {
        {"", ""},
        {"signed by ChaCha20-Poly1305's Poly1305", "signed by AES-256-GCM's GMAC"},
        {"encrypted by ChaCha20-Poly1305", "encrypted by AES-256-GCM"},
    };
    return names[meeting_protection(meeting)][meeting_aes(meeting)];
}

int seal_key(uint8_t out[SEAL_KEY_BYTES], const struct meeting *meeting, int role)
{
    const struct key *key = meeting->key;
    uint8_t salt[2 * WHOLE_HELLO_BYTES];
    const char *info = role == ROLE_SENDER ? "rdpipe3 seal sender"
                                           : "rdpipe3 seal receiver";
    size_t length = SEAL_KEY_BYTES;
    memcpy(salt, meeting->transcript.sender, WHOLE_HELLO_BYTES);
    memcpy(salt + WHOLE_HELLO_BYTES, meeting->transcript.receiver, WHOLE_HELLO_BYTES);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
    int good = context && EVP_PKEY_derive_init(context) > 0 &&
               EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) > 0 &&
               EVP_PKEY_CTX_set1_hkdf_salt(context, salt, sizeof salt) > 0 &&
               EVP_PKEY_CTX_set1_hkdf_key(context, key->bytes, (int)key->length) > 0 &&
               EVP_PKEY_CTX_add1_hkdf_info(context, (const unsigned char *)info,
                                           (int)strlen(info)) > 0 &&
               EVP_PKEY_derive(context, out, &length) > 0 && length == SEAL_KEY_BYTES;
    EVP_PKEY_CTX_free(context);
    return good ? 0 : -1;
}

static int seal_open(struct seal *seal, const struct meeting *meeting, int role,
                     enum seal_lane lane)
{
    uint8_t secret[SEAL_KEY_BYTES];
    *seal = (struct seal){.cipher = EVP_CIPHER_CTX_new(), .lane = lane};
    seal->signs = meeting_protection(meeting) == PROTECT_SIGN;
    int good = seal->cipher && seal_key(secret, meeting, role) == 0 &&
               EVP_CipherInit_ex(seal->cipher,
                                 meeting_aes(meeting) ? EVP_aes_256_gcm()
                                                      : EVP_chacha20_poly1305(),
                                 NULL, secret, NULL, 1);
    explicit_bzero(secret, sizeof secret);
    return good ? 0 : -1;
}

int seals_open(struct seals *seals, const struct meeting *meeting,
               struct trouble *trouble)
{
    int own = meeting->role, other = own == ROLE_SENDER ? ROLE_RECEIVER : ROLE_SENDER;
    if (seal_open(&seals->data, meeting, ROLE_SENDER, LANE_DATA) == 0 &&
        seal_open(&seals->say, meeting, own, LANE_CONTROL) == 0 &&
        seal_open(&seals->hear, meeting, other, LANE_CONTROL) == 0)
        return 0;
    return fault(trouble, "OpenSSL cannot encrypt");
}

void seals_close(struct seals *seals)
{
    EVP_CIPHER_CTX_free(seals->data.cipher);
    EVP_CIPHER_CTX_free(seals->say.cipher);
    EVP_CIPHER_CTX_free(seals->hear.cipher);
    *seals = (struct seals){.data = {.cipher = NULL}};
}

/* All but the tag, in place. Returns the body's length without it, or -1. */
static int pass(struct seal *seal, uint8_t *record, uint64_t counter, int sealing)
{
    struct record header;
    uint8_t iv[IV_BYTES] = {(uint8_t)seal->lane}, *body = record + RECORD_BYTES;
    int done;
    for (int i = 0; i < 8; i++)
        iv[4 + i] = (uint8_t)(counter >> 8 * i);
    if (record_get(&header, record, CHUNK_MOST + SEAL_BYTES) ||
        header.length < SEAL_BYTES)
        return -1;
    int length = (int)header.length - SEAL_BYTES;
    if (!EVP_CipherInit_ex(seal->cipher, NULL, NULL, NULL, iv, sealing) ||
        !EVP_CipherUpdate(seal->cipher, NULL, &done, record, RECORD_BYTES) ||
        (length &&
         !EVP_CipherUpdate(seal->cipher, seal->signs ? NULL : body, &done, body, length)))
        return -1;
    return length;
}

int seal_close_record(struct seal *seal, uint8_t *record, uint64_t counter)
{
    uint8_t *tag = record + RECORD_BYTES, none[SEAL_BYTES];
    int length = pass(seal, record, counter, 1), done;
    if (length < 0 || !EVP_CipherFinal_ex(seal->cipher, none, &done))
        return -1;
    return EVP_CIPHER_CTX_ctrl(seal->cipher, EVP_CTRL_AEAD_GET_TAG, SEAL_BYTES,
                               tag + length)
               ? 0
               : -1;
}

int seal_open_record(struct seal *seal, uint8_t *record, uint64_t counter)
{
    uint8_t none[SEAL_BYTES];
    int length = pass(seal, record, counter, 0), done;
    if (length < 0 || !EVP_CIPHER_CTX_ctrl(seal->cipher, EVP_CTRL_AEAD_SET_TAG, SEAL_BYTES,
                                           record + RECORD_BYTES + length))
        return -1;
    return EVP_CipherFinal_ex(seal->cipher, none, &done) > 0 ? 0 : -1;
}
