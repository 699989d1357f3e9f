/*
 * libFuzzer: records that an authenticated sender may send to rdrecv's dispatch and its worker, in
 * any order, valid or broken. Only a complete stream may succeed, and all of its bytes must have
 * arrived.
 */
#define main rdrecv_main
#include "../rdrecv.c"
#undef main

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <xxhash.h>

#include "fuzz_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct said { /* the meaning of the records sent by the rules */
    uint8_t bytes[FUZZ_CREDITS * FUZZ_CHUNK];
    size_t length;
    uint64_t count;
    bool ended, broken; /* broken: an invalid record was sent before the end */
};

static void say_data(struct fuzz_peer *peer, struct said *said, struct fuzz_input *input)
{
    uint32_t length = 1 + fuzz_byte(input) * 16;
    if (said->count == FUZZ_CREDITS || said->ended)
        said->broken = true;
    if (said->broken)
        return;
    memset(said->bytes + said->length, (int)fuzz_byte(input), length);
    fuzz_add_record(peer, RECORD_DATA, said->count++, said->bytes + said->length, length);
    said->length += length;
}

static void say_end(struct fuzz_peer *peer, struct said *said)
{
    uint8_t body[END_BYTES];
    ending_put(body, &(struct ending){said->length,
                                      XXH3_64bits(said->bytes, said->length)});
    fuzz_add_record(peer, RECORD_END, said->count, body, sizeof body);
    said->broken |= said->ended;
    said->ended = true;
    peer->before = peer->length;
    peer->awaited = RECORD_DONE;
    fuzz_add_record(peer, RECORD_BYE, 0, "", 0);
}

static void put_together(struct fuzz_peer *peer, struct said *said,
                         struct fuzz_input *input)
{
    while (input->at < input->end && peer->length < 32768) {
        unsigned what = fuzz_byte(input) % 8;
        if (what < 4) {
            say_data(peer, said, input);
        } else if (what == 4) {
            fuzz_add_record(peer, RECORD_HEARTBEAT, 0, "", 0);
            said->broken |= said->ended;
        } else if (what == 5) {
            say_end(peer, said);
        } else {
            said->broken = true;
            fuzz_add_raw(peer, input);
        }
    }
    if (!peer->awaited)
        peer->before = peer->length;
}

/* Create the stream's target: a file in memory. */
static int open_target(struct receiver *receiver)
{
    int fd = memfd_create("out", MFD_CLOEXEC);
    if (fd < 0 ||
        target_find(&receiver->target, NULL, fd, false, &receiver->end.error) < 0)
        abort();
    return fd;
}

static void compare(const struct said *said, int out)
{
    static uint8_t got[sizeof said->bytes + 1];
    ssize_t have = pread(out, got, sizeof got, 0);
    if (have != (ssize_t)said->length || memcmp(got, said->bytes, said->length) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz_peer peer;
    static struct said said;
    static struct receiver receiver;
    struct options options = {.checksum = true};
    struct fuzz_input input = {data, data + size};
    unsigned how = fuzz_byte(&input);
    struct hello hello = {.chunk = FUZZ_CHUNK, .credits = FUZZ_CREDITS,
                          .checksum = how % 2 ? CHECKSUM_XXH3 : CHECKSUM_NONE};
    fuzz_peer_open(&peer);
    memset(&said, 0, sizeof said);
    memset(&receiver, 0, sizeof receiver);
    put_together(&peer, &said, &input);
    child_init(&receiver.end.child);
    receiver.end.options = &options;
    receiver.end.output_fd = -1;
    receiver.end.handshake = (struct handshake){.mine = hello, .theirs = hello};
    int out = open_target(&receiver);
    receiver.end.transport = tcp_open(fuzz_peer_start(&peer), &receiver.end.error);
    if (!receiver.end.transport || begin(&receiver) < 0)
        abort();
    bool good = end_run(&receiver.end, take_event, move) == 0;
    ring_end(&receiver.end.ring);
    pthread_join(receiver.end.worker.thread, NULL);
    transport_close(receiver.end.transport);
    ring_close(&receiver.end.ring);
    fuzz_peer_end(&peer);
    if (!said.broken && !peer.late && said.ended != good)
        abort();
    if (good && !said.broken)
        compare(&said, out);
    close(out);
    return 0;
}
