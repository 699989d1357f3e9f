/*
 * Shared by fuzz_receive.c and fuzz_send.c: a peer on the other end of a socket, which sends
 * messages assembled from the fuzzer's bytes.
 */
#ifndef FUZZ_STREAM_H
#define FUZZ_STREAM_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport.h"

enum {
    FUZZ_CHUNK = 4096,
    FUZZ_CREDITS = 16,
    FUZZ_WORDS_MOST = 65536,
    FUZZ_WAIT_MS = 20,
};

struct fuzz_input {
    const uint8_t *at, *end;
};

struct fuzz_peer {
    int fd;
    uint8_t words[FUZZ_WORDS_MOST];
    size_t length, before; /* `before`: bytes sent before `awaited` arrives */
    int awaited;           /* a record type; 0: nothing */
    bool late;             /* it did not arrive in time */
    pthread_t thread;
};

static inline void fuzz_peer_open(struct fuzz_peer *peer)
{
    peer->length = peer->before = 0;
    peer->awaited = 0;
}

static inline unsigned fuzz_byte(struct fuzz_input *input)
{
    return input->at < input->end ? *input->at++ : 0;
}

static inline void fuzz_add(struct fuzz_peer *peer, const void *bytes, size_t length)
{
    if (length > sizeof peer->words - peer->length)
        length = sizeof peer->words - peer->length;
    memcpy(peer->words + peer->length, bytes, length);
    peer->length += length;
}

static inline void fuzz_add_record(struct fuzz_peer *peer, int type, uint64_t number,
                                   const void *body, uint32_t length)
{
    uint8_t header[RECORD_BYTES];
    record_put(header, &(struct record){(uint8_t)type, length, number});
    fuzz_add(peer, header, sizeof header);
    fuzz_add(peer, body, length);
}

/* Append raw fuzzer bytes: a header with arbitrary length, type and number. */
static inline void fuzz_add_raw(struct fuzz_peer *peer, struct fuzz_input *input)
{
    size_t length = fuzz_byte(input);
    if (length > (size_t)(input->end - input->at))
        length = (size_t)(input->end - input->at);
    fuzz_add(peer, input->at, length);
    input->at += length;
}

static inline void fuzz_write(int fd, const uint8_t *from, size_t length)
{
    while (length) {
        ssize_t done = send(fd, from, length, MSG_NOSIGNAL);
        if (done <= 0)
            return;
        from += done;
        length -= (size_t)done;
    }
}

/*
 * Read records until one of this type arrives. The wait is short, because the peer may have sent
 * invalid records.
 */
static inline bool fuzz_await(int fd, int type)
{
    uint8_t bytes[RECORD_BYTES + FUZZ_CHUNK];
    struct record record = {0};
    struct pollfd polled = {fd, POLLIN, 0};
    while (record.type != type) {
        size_t want = RECORD_BYTES, have = 0;
        while (have < want) {
            ssize_t got = 0;
            if (poll(&polled, 1, FUZZ_WAIT_MS) == 1)
                got = recv(fd, bytes + have, want - have, 0);
            if (got <= 0)
                return false;
            have += (size_t)got;
            if (have != RECORD_BYTES || want != RECORD_BYTES)
                continue;
            if (record_get(&record, bytes, FUZZ_CHUNK))
                abort(); /* the tested side only sends valid records */
            want += record.length;
        }
    }
    return true;
}

static inline void *fuzz_speak(void *argument)
{
    struct fuzz_peer *peer = argument;
    fuzz_write(peer->fd, peer->words, peer->before);
    peer->late = peer->awaited && !fuzz_await(peer->fd, peer->awaited);
    fuzz_write(peer->fd, peer->words + peer->before, peer->length - peer->before);
    shutdown(peer->fd, SHUT_WR);
    return NULL;
}

/* Start the peer and return the descriptor of the other end. */
static inline int fuzz_peer_start(struct fuzz_peer *peer)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        abort();
    peer->fd = ends[1];
    if (pthread_create(&peer->thread, NULL, fuzz_speak, peer))
        abort();
    return ends[0];
}

static inline void fuzz_peer_end(struct fuzz_peer *peer)
{
    pthread_join(peer->thread, NULL);
    close(peer->fd);
}

#endif
