/*
 * libFuzzer: records that an authenticated receiver may send to rdsend's dispatch: credits, done,
 * and arbitrary bytes. The run may only succeed if a done record for all bytes arrives after the
 * end record.
 */
#define main rdsend_main
#include "../rdsend.c"
#undef main

#include "fuzz_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BUFFERS = 3, CHUNKS_MOST = 8 };

struct said {
    uint64_t credits;
    bool done, broken;
};

static void put_together(struct fuzz_peer *peer, struct said *said, uint64_t chunks,
                         uint64_t length, struct fuzz_input *input)
{
    uint8_t body[END_BYTES];
    while (input->at < input->end && peer->length < 32768) {
        unsigned what = fuzz_byte(input) % 8;
        said->broken |= said->done;
        if (what < 4) {
            said->credits += fuzz_byte(input) % 4;
            fuzz_add_record(peer, RECORD_CREDIT, said->credits, "", 0);
        } else if (what == 4) {
            fuzz_add_record(peer, RECORD_HEARTBEAT, 0, "", 0);
        } else if (what == 5) {
            ending_put(body, &(struct ending){length, 0});
            peer->before = peer->length;
            peer->awaited = RECORD_END;
            fuzz_add_record(peer, RECORD_DONE, chunks, body, sizeof body);
            said->done = true;
        } else {
            said->broken = true;
            fuzz_add_raw(peer, input);
        }
    }
    if (!peer->awaited)
        peer->before = peer->length;
}

static int open_file(size_t length)
{
    static const uint8_t bytes[CHUNKS_MOST * FUZZ_CHUNK];
    int fd = memfd_create("in", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET))
        abort();
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz_peer peer;
    static struct sender sender;
    struct options options = {.sends = true, .checksum = true, .file = "memory"};
    struct fuzz_input input = {data, data + size};
    struct said said = {.credits = 0};
    unsigned how = fuzz_byte(&input);
    size_t length = fuzz_byte(&input) * (CHUNKS_MOST * FUZZ_CHUNK / 256);
    uint64_t chunks = (length + FUZZ_CHUNK - 1) / FUZZ_CHUNK;
    struct hello hello = {.chunk = FUZZ_CHUNK, .credits = BUFFERS,
                          .checksum = how % 2 ? CHECKSUM_XXH3 : CHECKSUM_NONE};
    fuzz_peer_open(&peer);
    memset(&sender, 0, sizeof sender);
    put_together(&peer, &said, chunks, length, &input);
    child_init(&sender.end.child);
    sender.end.options = &options;
    sender.end.output_fd = -1;
    sender.fd = open_file(length);
    fstat(sender.fd, &sender.before);
    sender.whole = true;
    sender.end.handshake = (struct handshake){.mine = hello, .theirs = hello};
    sender.end.transport = tcp_open(fuzz_peer_start(&peer), &sender.end.error);
    if (!sender.end.transport || begin(&sender) < 0)
        abort();
    bool good = end_run(&sender.end, take_event, move) == 0;
    if (good && (!sender.end_ms || sender.posted != chunks))
        abort();
    ring_end(&sender.end.ring);
    pthread_join(sender.end.worker.thread, NULL);
    transport_close(sender.end.transport);
    ring_close(&sender.end.ring);
    close(sender.fd);
    fuzz_peer_end(&peer);
    bool whole = said.done && said.credits >= chunks;
    if (!said.broken && !peer.late && whole != good)
        abort();
    return 0;
}
