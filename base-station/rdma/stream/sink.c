/* Where the stream is written: see sink.h. */
#define XXH_INLINE_ALL
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "records.h"

enum { PIPE_BYTES = 1 << 20 };
enum { FATE_OPEN, FATE_GIVEN_UP, FATE_PUBLISHED };

static const char *name_of(const struct sink *sink)
{
    return sink->target->path[0] ? sink->target->path : "the output";
}

/* After a failed write: 0 if it is worth another try. */
static int retry(struct sink *sink)
{
    if (errno == EINTR)
        return 0;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        struct pollfd polled = {sink->target->fd, POLLOUT, 0};
        poll(&polled, 1, -1);
        return 0;
    }
    if (errno == EPIPE)
        return troubled(&sink->trouble, EXIT_FAULT,
                        "the reader of %s left before the end", name_of(sink));
    return troubled(&sink->trouble, EXIT_FAULT, "cannot write %s: %s", name_of(sink),
                    strerror(errno));
}

static int write_all(struct sink *sink, const uint8_t *from, size_t length)
{
    while (length) {
        ssize_t done = write(sink->target->fd, from, length);
        if (done == 0) {
            done = -1;
            errno = ENOSPC; /* a device that takes no more */
        }
        if (done > 0) {
            from += done;
            length -= (size_t)done;
        } else if (retry(sink) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Moves what is in the slot's pipe on; all the rest has to be written. An output that
 * cannot be spliced to (a file open for appending) gets it by way of our memory. */
static int move_piped(struct sink *sink, struct slot *slot, uint32_t *moved)
{
    while (*moved < slot->piped) {
        uint32_t left = slot->piped - *moved;
        ssize_t done = splice(slot->pipe[0], NULL, sink->target->fd, NULL, left,
                              SPLICE_F_MOVE);
        if (done > 0) {
            *moved += (uint32_t)done;
        } else if (done == 0 || errno == EINVAL) {
            if (sink->verbose && sink->by_splice)
                say("%s cannot be spliced to: written", name_of(sink));
            sink->by_splice = false;
            return slot_fetch(slot, left) < 0 ? retry(sink) : 0;
        } else if (retry(sink) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Brings what is in the slot's pipe into its memory, for the checksum, and leaves it in
 * there, too. Where the kernel cannot, it goes on by way of memory. */
static int see_piped(struct sink *sink, struct slot *slot)
{
    if (slot->piped == 0 ||
        (sink->copy[0] >= 0 && slot_peek(slot, sink->copy) == 0))
        return 0;
    if (sink->verbose && sink->by_splice)
        say("%s is not spliced to: %s", name_of(sink), strerror(errno));
    sink->by_splice = false;
    ring_unpipe(sink->copy);
    if (slot_fetch(slot, slot->piped) == 0)
        return 0;
    return troubled(&sink->trouble, EXIT_FAULT, "cannot read a pipe: %s",
                    strerror(errno));
}

static int take(struct sink *sink, struct slot *slot, XXH64_state_t *hash)
{
    uint8_t *payload = slot->bytes + RECORD_BYTES;
    uint32_t length = slot->length;
    if (sink->seal) {
        if (length <= SEAL_BYTES || seal_open_record(sink->seal, slot->bytes) < 0)
            return troubled(&sink->trouble, EXIT_FAULT,
                            "somebody changed the encrypted stream on its way");
        length -= SEAL_BYTES;
    }
    if (sink->checksummed) {
        if (see_piped(sink, slot) < 0)
            return -1;
        XXH64_update(hash, payload, length);
    }
    int64_t since_us = now_us();
    uint32_t moved = 0;
    if (move_piped(sink, slot, &moved) < 0 ||
        write_all(sink, payload + moved, length - moved) < 0)
        return -1;
    sink->write_us += now_us() - since_us;
    atomic_fetch_add(&sink->total, length);
    return 0;
}

static int judge(struct sink *sink, uint64_t checksum)
{
    struct ending ending;
    uint64_t total = atomic_load(&sink->total);
    if (!sink->end_known)
        return troubled(&sink->trouble, EXIT_FAULT, "stopped");
    if (sink->seal && seal_open_record(sink->seal, sink->end) < 0)
        return troubled(&sink->trouble, EXIT_FAULT,
                        "somebody changed the end of the encrypted stream on its way");
    ending_get(&ending, sink->end + RECORD_BYTES);
    if (ending.total != total)
        return troubled(&sink->trouble, EXIT_FAULT,
                        "%llu bytes came of the %llu that were sent",
                        (unsigned long long)total, (unsigned long long)ending.total);
    if (sink->checksummed && ending.value != checksum)
        return troubled(&sink->trouble, EXIT_FAULT,
                        "the checksum is %016llx, sent was %016llx: the network or the "
                        "memory of a machine is faulty",
                        (unsigned long long)checksum, (unsigned long long)ending.value);
    return 0;
}

/* Who comes first decides. */
static bool settle(struct sink *sink, int fate)
{
    int undecided = FATE_OPEN;
    return atomic_compare_exchange_strong(&sink->fate, &undecided, fate);
}

static int work(struct sink *sink)
{
    struct slot *slot;
    XXH64_state_t hash;
    XXH64_reset(&hash, 0);
    if (target_open(sink->target, &sink->trouble) < 0)
        return -1;
    fcntl(sink->target->fd, F_SETPIPE_SZ, PIPE_BYTES); /* what is not a pipe refuses */
    atomic_store(&sink->fd, sink->target->fd);
    while ((slot = ring_wait(sink->ring, &sink->ring->full, &sink->network_us))) {
        if (take(sink, slot, &hash) < 0)
            return -1;
        ring_put(sink->ring, &sink->ring->free, slot);
        ring_wake(sink->ring);
    }
    if (judge(sink, XXH64_digest(&hash)) < 0)
        return -1;
    atomic_store(&sink->fd, -1);
    if (target_sync(sink->target, &sink->trouble) < 0)
        return -1;
    if (!settle(sink, FATE_PUBLISHED))
        return troubled(&sink->trouble, EXIT_FAULT, "stopped");
    return target_publish(sink->target, &sink->trouble);
}

bool sink_give_up(struct sink *sink)
{
    return settle(sink, FATE_GIVEN_UP);
}

static void *sink_main(void *argument)
{
    struct sink *sink = argument;
    work(sink);
    atomic_store(&sink->over, true);
    ring_wake(sink->ring);
    return NULL;
}

/* Over loopback a spliced page is still that of the sender's file, unless there is a
 * checksum: then the sender copies. A pipe keeps it for a reader who may come when all is
 * confirmed and the file has changed: so only a command that is waited for gets such
 * pages. Files and devices copy them: with a checksum, that would be once too often. */
static bool may_splice(const struct sink *sink)
{
    mode_t mode = sink->target->old.st_mode;
    bool to_pipe = sink->to_command || (S_ISFIFO(mode) && !sink->target->replaces);
    bool copies = sink->target->replaces || S_ISREG(mode) || S_ISBLK(mode) ||
                  S_ISCHR(mode);
    return sink->checksummed ? to_pipe : sink->to_command || copies;
}

/* A page that came in two segments takes two places. */
static int open_pipes(struct sink *sink)
{
    uint32_t most = 2 * sink->ring->chunk;
    if (sink->checksummed && ring_pipe(sink->ring, most, sink->copy) < 0)
        return -1;
    return ring_pipes(sink->ring, most);
}

int sink_start(struct sink *sink, struct trouble *trouble)
{
    atomic_store(&sink->fd, -1);
    sink->copy[0] = sink->copy[1] = -1;
    sink->by_splice = sink->by_splice && may_splice(sink);
    if (sink->by_splice && open_pipes(sink) < 0) {
        sink->by_splice = false;
        if (sink->verbose)
            say("no pipes to splice through: %s", strerror(errno));
    }
    int error = pthread_create(&sink->thread, NULL, sink_main, sink);
    if (error)
        return troubled(trouble, EXIT_FAULT, "no thread: %s", strerror(error));
    sink->started = true;
    return 0;
}

void sink_finish(struct sink *sink, const uint8_t *end, size_t length)
{
    memcpy(sink->end, end, length);
    sink->end_known = true;
    ring_end(sink->ring);
}

void sink_close(struct sink *sink)
{
    if (!sink->started)
        return;
    pthread_join(sink->thread, NULL);
    ring_unpipe(sink->copy);
}
