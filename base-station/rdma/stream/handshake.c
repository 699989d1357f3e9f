/* Shared key, handshake and sealed records: see handshake.h. */
#include "handshake.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__arm__) || defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "bytes.h"

/* Read all of `fd`, but no more than proves the key too long. */
static int key_read(struct key *key, int fd, const char *what, struct error *error)
{
    size_t room;
    while ((room = sizeof key->bytes - key->length)) {
        ssize_t got = read(fd, key->bytes + key->length, room);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return fault_status(error, EXIT_USAGE, "cannot read the key from %s: %m", what);
        key->length += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

/* Refuse a key file that another user can read or change. */
static int check_file(int fd, const char *name, struct error *error)
{
    struct stat state;
    if (fstat(fd, &state) < 0)
        return fault_status(error, EXIT_USAGE, "cannot use the key file %s: %m", name);
    if (state.st_uid != geteuid() && state.st_uid != 0)
        return fault_status(error, EXIT_USAGE,
                            "the key file %s belongs to user %u: make one of your own with "
                            "rdrecv --new-key FILE", name, (unsigned)state.st_uid);
    if (state.st_mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH))
        return fault_status(error, EXIT_USAGE,
                            "the key file %s has mode %04o, so other users can read or change it: "
                            "chmod 600 %s, or make a new one with rdrecv --new-key FILE", name,
                            (unsigned)state.st_mode & 07777, name);
    return 0;
}

/* Return true for a key with few different bytes, or a repeated short pattern. A random key is
 * refused by mistake once in 10^19 (64 hex digits) or 10^12 times (16 bytes). */
static bool is_guessable(const struct key *key)
{
    bool seen[256] = {false};
    int different = 0;
    for (size_t i = 0; i < key->length; i++) {
        different += !seen[key->bytes[i]];
        seen[key->bytes[i]] = true;
    }
    for (size_t period = 1; period <= key->length / 2 && period < KEY_LEAST; period++)
        if (memcmp(key->bytes, key->bytes + period, key->length - period) == 0)
            return true;
    return different < KEY_DIFFERENT;
}

/* Erase the key from the environment, used or not, so that no command inherits it. */
static void forget(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    unsetenv("RDPIPE_KEY");
}

int key_open(struct key *key, const char *file, int fd, struct error *error)
{
    char what[100] = "RDPIPE_KEY", *given = getenv(what);
    *key = (struct key){.length = 0};
    if (file) {
        visible(what, sizeof what, file);
        fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
            fault_status(error, EXIT_USAGE, "cannot open the key file %s: %m", what);
    } else if (fd >= 0) {
        snprintf(what, sizeof what, "descriptor %d", fd);
    } else if (given) {
        key->length = strnlen(given, sizeof key->bytes);
        memcpy(key->bytes, given, key->length);
    } else {
        fault_status(error, EXIT_USAGE,
                 "no key: give --key-file FILE, --key-fd N or RDPIPE_KEY "
                 "(rdrecv --new-key FILE makes one)");
    }
    if (fd >= 0 && (!file || check_file(fd, what, error) == 0))
        key_read(key, fd, what, error);
    if (fd > STDERR_FILENO)
        close(fd);
    forget(given);
    if (error->status)
        return -1;
    if (key->length > KEY_MOST)
        return fault_status(error, EXIT_USAGE,
                        "the key in %s has more than %d bytes: is it the right %s?", what,
                        KEY_MOST, fd < 0 ? "one" : "file");
    if (key->length && key->bytes[key->length - 1] == '\n')
        key->length--;
    if (key->length < KEY_LEAST)
        return fault_status(error, EXIT_USAGE, "the key from %s has %zu bytes, fewer than %d", what,
                            key->length, KEY_LEAST);
    if (is_guessable(key))
        return fault_status(error, EXIT_USAGE,
                            "the key from %s is easy to guess: it needs %d different "
                            "characters and no repeated pattern (rdrecv --new-key FILE makes "
                            "a good one)", what, KEY_DIFFERENT);
    return 0;
}

int key_make(const char *file, struct error *error)
{
    enum { DIGITS = 64 };
    char digits[DIGITS + 1], what[100];
    visible(what, sizeof what, file);
    if (hex_random(digits, DIGITS) < 0)
        return fault(error, "no random bytes: %m");
    digits[DIGITS] = '\n';
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fault(error, "cannot make the key file %s: %m", what);
    bool whole = write(fd, digits, sizeof digits) == sizeof digits && fsync(fd) == 0;
    if (!whole) {
        fault(error, "cannot write the key file %s: %m", what);
        unlink(file);
    }
    close(fd);
    explicit_bzero(digits, sizeof digits);
    return whole ? 0 : -1;
}

void key_close(struct key *key)
{
    explicit_bzero(key, sizeof *key);
}

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
                EVP_PKEY_CTX_set1_hkdf_key(context, secret, (int)key->length + SECRET_BYTES) > 0 &&
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
