/* Encoding and decoding of records: see records.h. */
#include "records.h"

#include <string.h>

enum { MAGIC = 0x4452 };

static void put(uint8_t *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *in, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)in[i] << 8 * i;
    return value;
}

void record_put(uint8_t out[RECORD_BYTES], const struct record *record)
{
    put(out, MAGIC, 2);
    put(out + 2, record->type, 1);
    put(out + 3, 0, 1);
    put(out + 4, record->length, 4);
    put(out + 8, record->number, 8);
}

static const struct { uint32_t least, most; } bodies[] = {
    /* another version's hello may be longer */
    [RECORD_HELLO] = {HELLO_BYTES, ABORT_BYTES},
    [RECORD_PROOF] = {PROOF_BYTES, PROOF_BYTES},
    [RECORD_DATA] = {1, 0},
    [RECORD_END] = {END_BYTES, END_BYTES},
    [RECORD_DONE] = {END_BYTES, END_BYTES},
    [RECORD_ABORT] = {0, ABORT_BYTES}, /* the other types have no body */
};

const char *record_get(struct record *record, const uint8_t in[RECORD_BYTES], uint32_t data_most)
{
    if (get(in, 2) != MAGIC || in[3] != 0)
        return "it does not speak rdsend's protocol";
    uint8_t type = in[2];
    if (type < RECORD_HELLO || type > RECORD_ABORT)
        return "a record of a type that this version does not know";
    uint32_t length = (uint32_t)get(in + 4, 4);
    uint32_t most = bodies[type].most + (type > RECORD_DATA ? SEAL_BYTES : 0);
    if (length < bodies[type].least || length > (type == RECORD_DATA ? data_most : most))
        return RECORD_LENGTH_WRONG;
    *record = (struct record){type, length, get(in + 8, 8)};
    return NULL;
}

bool record_fits(const struct record *record)
{
    return record->length >= bodies[record->type].least &&
           record->length <= bodies[record->type].most;
}

void hello_put(uint8_t out[HELLO_BYTES], const struct hello *hello)
{
    put(out, hello->version, 2);
    put(out + 2, hello->role, 1);
    put(out + 3, hello->transport, 1);
    put(out + 4, hello->protection, 1);
    put(out + 5, hello->checksum, 1);
    put(out + 6, hello->aes, 1);
    put(out + 7, 0, 1);
    put(out + 8, hello->chunk, 4);
    put(out + 12, hello->credits, 4);
    memcpy(out + 16, hello->public, PUBLIC_BYTES);
}

const char *hello_get(struct hello *hello, const uint8_t in[HELLO_BYTES])
{
    *hello = (struct hello){
        .version = (uint16_t)get(in, 2),
        .role = in[2],
        .transport = in[3],
        .protection = in[4],
        .checksum = in[5],
        .aes = in[6],
        .chunk = (uint32_t)get(in + 8, 4),
        .credits = (uint32_t)get(in + 12, 4),
    };
    memcpy(hello->public, in + 16, PUBLIC_BYTES);
    if (hello->version != RECORDS_VERSION)
        return NULL;
    if (hello->role < ROLE_SENDER || hello->role > ROLE_RECEIVER)
        return "a hello of neither a sender nor a receiver";
    if (hello->transport < TRANSPORT_TCP || hello->transport > TRANSPORT_RDMA)
        return "a hello with an unknown transport";
    if (hello->protection > PROTECT_ENCRYPT || hello->checksum > CHECKSUM_XXH3 || hello->aes > 1)
        return "a hello with an unknown protection or checksum";
    if (hello->chunk < CHUNK_LEAST || hello->chunk > CHUNK_MOST)
        return "a hello with a chunk out of bounds";
    if (hello->credits < 1 || hello->credits > CREDITS_MOST)
        return "a hello with a number of credits out of bounds";
    return NULL;
}

void ending_put(uint8_t out[END_BYTES], const struct ending *ending)
{
    put(out, ending->total, 8);
    put(out + 8, ending->value, 8);
}

void ending_get(struct ending *ending, const uint8_t in[END_BYTES])
{
    *ending = (struct ending){get(in, 8), get(in + 8, 8)};
}
