/* --encrypt: see seal.h. */
#include "seal.h"

#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <string.h>

enum { KEY_BYTES = 32, IV_BYTES = 12 };

static int derive(uint8_t out[KEY_BYTES], const struct key *key, int role,
                  const struct transcript *transcript)
{
    uint8_t salt[2 * WHOLE_HELLO_BYTES];
    const char *info = role == ROLE_SENDER ? "rdpipe1 seal sender"
                                           : "rdpipe1 seal receiver";
    size_t length = KEY_BYTES;
    memcpy(salt, transcript->sender, WHOLE_HELLO_BYTES);
    memcpy(salt + WHOLE_HELLO_BYTES, transcript->receiver, WHOLE_HELLO_BYTES);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
    int good = context && EVP_PKEY_derive_init(context) > 0 &&
               EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) > 0 &&
               EVP_PKEY_CTX_set1_hkdf_salt(context, salt, sizeof salt) > 0 &&
               EVP_PKEY_CTX_set1_hkdf_key(context, key->bytes, (int)key->length) > 0 &&
               EVP_PKEY_CTX_add1_hkdf_info(context, (const unsigned char *)info,
                                           (int)strlen(info)) > 0 &&
               EVP_PKEY_derive(context, out, &length) > 0 && length == KEY_BYTES;
    EVP_PKEY_CTX_free(context);
    return good ? 0 : -1;
}

int seal_open(struct seal *seal, const struct key *key, int role,
              const struct transcript *transcript)
{
    uint8_t secret[KEY_BYTES];
    seal->cipher = EVP_CIPHER_CTX_new();
    int good = seal->cipher && derive(secret, key, role, transcript) == 0 &&
               EVP_CipherInit_ex(seal->cipher, EVP_aes_256_gcm(), NULL, secret, NULL, 1);
    explicit_bzero(secret, sizeof secret);
    if (good)
        return 0;
    seal_close(seal);
    return -1;
}

/* The nonce is the record's number, as it stands in the header. */
static int begin(struct seal *seal, const uint8_t *record, int sealing)
{
    uint8_t iv[IV_BYTES] = {0};
    int length;
    memcpy(iv + IV_BYTES - 8, record + 8, 8);
    return EVP_CipherInit_ex(seal->cipher, NULL, NULL, NULL, iv, sealing) &&
           EVP_CipherUpdate(seal->cipher, NULL, &length, record, RECORD_BYTES);
}

static int body_length(const uint8_t *record)
{
    struct record header;
    if (record_get(&header, record, CHUNK_MOST + SEAL_BYTES) ||
        header.length < SEAL_BYTES)
        return -1;
    return (int)header.length - SEAL_BYTES;
}

int seals_open(struct seal *mine, struct seal *theirs, const struct key *key, int role,
               const struct transcript *transcript, struct trouble *trouble)
{
    int other = role == ROLE_SENDER ? ROLE_RECEIVER : ROLE_SENDER;
    if (seal_open(mine, key, role, transcript) == 0 &&
        seal_open(theirs, key, other, transcript) == 0)
        return 0;
    return troubled(trouble, EXIT_FAULT, "OpenSSL cannot encrypt");
}

int seal_close_record(struct seal *seal, uint8_t *record)
{
    uint8_t *body = record + RECORD_BYTES;
    int length = body_length(record), done;
    if (length < 0 || !begin(seal, record, 1) ||
        !EVP_CipherUpdate(seal->cipher, body, &done, body, length) ||
        !EVP_CipherFinal_ex(seal->cipher, body + done, &done))
        return -1;
    return EVP_CIPHER_CTX_ctrl(seal->cipher, EVP_CTRL_GCM_GET_TAG, SEAL_BYTES,
                               body + length)
               ? 0
               : -1;
}

int seal_open_record(struct seal *seal, uint8_t *record)
{
    uint8_t *body = record + RECORD_BYTES;
    int length = body_length(record), done;
    if (length < 0 || !begin(seal, record, 0) ||
        !EVP_CipherUpdate(seal->cipher, body, &done, body, length) ||
        !EVP_CIPHER_CTX_ctrl(seal->cipher, EVP_CTRL_GCM_SET_TAG, SEAL_BYTES,
                             body + length))
        return -1;
    return EVP_CipherFinal_ex(seal->cipher, body + done, &done) > 0 ? 0 : -1;
}

void seal_close(struct seal *seal)
{
    EVP_CIPHER_CTX_free(seal->cipher);
    seal->cipher = NULL;
}
