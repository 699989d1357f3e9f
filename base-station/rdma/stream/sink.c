/* Where the stream is written: see sink.h. */
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "hash.h"
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
    struct trouble *trouble = &sink->worker->trouble;
    if (errno == EPIPE)
        return fault(trouble, "the reader of %s left before the end", name_of(sink));
    return fault(trouble, "cannot write %s: %m", name_of(sink));
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

static int take(struct sink *sink, struct slot *slot, XXH3_state_t *hash)
{
    struct worker *worker = sink->worker;
    uint8_t *payload = slot->bytes + RECORD_BYTES;
    uint32_t length = slot->length;
    if (worker->seal) {
        if (length <= SEAL_BYTES ||
            seal_open_record(worker->seal, slot->bytes, worker->count++) < 0)
            return fault(&worker->trouble, "somebody changed the stream on its way");
        length -= SEAL_BYTES;
    }
    if (worker->checksummed)
        XXH3_64bits_update(hash, payload, length);
    int64_t since_us = now_us();
    if (write_all(sink, payload, length) < 0)
        return -1;
    worker->stream_us += now_us() - since_us;
    atomic_fetch_add(&worker->total, length);
    return 0;
}

static int judge(struct sink *sink, uint64_t checksum)
{
    uint64_t total = atomic_load(&sink->worker->total);
    if (!sink->end_known)
        return fault(&sink->worker->trouble, "stopped");
    if (sink->end.total != total)
        return fault(&sink->worker->trouble, "%llu bytes came of the %llu that were sent",
                     (unsigned long long)total, (unsigned long long)sink->end.total);
    if (sink->worker->checksummed && sink->end.value != checksum)
        return fault(&sink->worker->trouble,
                     "the checksum is %016llx, sent was %016llx: the network or the "
                     "memory of a machine is faulty", (unsigned long long)checksum,
                     (unsigned long long)sink->end.value);
    return 0;
}

/* Who comes first decides. */
static bool settle(struct sink *sink, int fate)
{
    int undecided = FATE_OPEN;
    return atomic_compare_exchange_strong(&sink->fate, &undecided, fate);
}

static int work(struct sink *sink, XXH3_state_t *hash)
{
    struct ring *ring = sink->worker->ring;
    struct slot *slot;
    XXH3_64bits_reset(hash);
    if (target_open(sink->target, &sink->worker->trouble) < 0)
        return -1;
    fcntl(sink->target->fd, F_SETPIPE_SZ, PIPE_BYTES); /* what is not a pipe refuses */
    atomic_store(&sink->fd, sink->target->fd);
    while ((slot = ring_wait(ring, &ring->full, &sink->worker->network_us))) {
        if (take(sink, slot, hash) < 0)
            return -1;
        ring_put(ring, &ring->free, slot);
        ring_wake(ring);
    }
    if (judge(sink, XXH3_64bits_digest(hash)) < 0)
        return -1;
    atomic_store(&sink->fd, -1);
    if (target_sync(sink->target, &sink->worker->trouble) < 0)
        return -1;
    if (!settle(sink, FATE_PUBLISHED))
        return fault(&sink->worker->trouble, "stopped");
    return target_publish(sink->target, &sink->worker->trouble);
}

bool sink_give_up(struct sink *sink)
{
    return settle(sink, FATE_GIVEN_UP);
}

static void *sink_main(void *argument)
{
    struct sink *sink = argument;
    XXH3_state_t *hash = allocated(XXH3_createState());
    work(sink, hash);
    XXH3_freeState(hash);
    worker_over(sink->worker);
    return NULL;
}

int sink_start(struct sink *sink, struct trouble *trouble)
{
    atomic_store(&sink->fd, -1);
    return worker_start(sink->worker, sink_main, sink, trouble);
}

void sink_finish(struct sink *sink, const struct ending *end)
{
    sink->end = *end;
    sink->end_known = true;
    ring_end(sink->worker->ring);
}
