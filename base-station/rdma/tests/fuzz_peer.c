/*
 * libFuzzer: all bytes that a peer may send, before and after the proof. The first byte selects the
 * target: a handshake as receiver, a handshake as sender, a stream over a socket, or a sealed record.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handshake.h"
#include "transport.h"

enum { CHUNK = 512, SLOTS = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void authenticate(int role, const uint8_t *data, size_t size)
{
    static struct key key = {.bytes = "0123456789abcdef", .length = 16};
    struct hello mine = {RECORDS_VERSION, (uint8_t)role, TRANSPORT_TCP, PROTECT_NOT,
                         CHECKSUM_XXH3, 0, CHUNK * 8, SLOTS, {0}};
    struct handshake handshake;
    struct error error = {0};
    handshake_open(&handshake, &key, &mine, &error);
    while (size >= RECORD_BYTES && !error.status) {
        struct record record;
        if (record_get(&record, data, 0) || size < RECORD_BYTES + record.length)
            return;
        handshake_take(&handshake, &record, data + RECORD_BYTES, &error);
        data += RECORD_BYTES + record.length;
        size -= RECORD_BYTES + record.length;
    }
    if (handshake.stage == HANDSHAKE_OVER)
        abort(); /* a proof cannot be guessed */
}

static void open_sealed(const uint8_t *data, size_t size)
{
    static struct key key = {.bytes = "0123456789abcdef", .length = 16};
    static const struct handshake handshake = {
        .key = &key,
        .role = ROLE_RECEIVER,
        .mine = {.protection = PROTECT_ENCRYPT, .aes = 1},
        .theirs = {.aes = 1},
    };
    static struct seals seals;
    struct error error = {0};
    static uint8_t work[RECORD_BYTES + CHUNK + SEAL_BYTES];
    struct record record;
    if (size < RECORD_BYTES || size > sizeof work)
        return;
    if (record_get(&record, data, CHUNK + SEAL_BYTES) ||
        size < RECORD_BYTES + record.length)
        return;
    if (!seals.data.cipher && seals_open(&seals, &handshake, &error) < 0)
        abort();
    memcpy(work, data, size);
    if (seal_open_record(&seals.data, work, record.number) == 0)
        abort();
}

static void listen_to(const uint8_t *data, size_t size)
{
    static uint8_t memory[SLOTS][RECORD_BYTES + CHUNK + SEAL_BYTES];
    struct slot slots[SLOTS];
    struct error error = {0};
    struct transport_event event;
    int ends[2], got;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        abort();
    struct transport *transport = tcp_open(ends[0], &error);
    if (!transport || write(ends[1], data, size) != (ssize_t)size)
        abort();
    transport->data_most = CHUNK + SEAL_BYTES;
    for (int i = 0; i < SLOTS; i++) {
        slots[i] = (struct slot){.bytes = memory[i]};
        transport->kind->give(transport, &slots[i], &error);
    }
    while ((got = transport->kind->poll(transport, &event, &error)) > 0)
        if (event.kind == EVENT_DATA && event.record.number % 2)
            transport->kind->give(transport, event.slot, &error);
    if (got < 0 && !error.status)
        abort();
    close(ends[1]);
    transport_close(transport);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hello hello;
    if (size < 1 || size > 16384)
        return 0;
    if (size > HELLO_BYTES)
        hello_get(&hello, data + 1);
    switch (data[0] % 4) {
    case 0: authenticate(ROLE_RECEIVER, data + 1, size - 1); break;
    case 1: authenticate(ROLE_SENDER, data + 1, size - 1); break;
    case 2: listen_to(data + 1, size - 1); break;
    default: open_sealed(data + 1, size - 1); break;
    }
    return 0;
}
