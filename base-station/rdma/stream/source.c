/* Where the stream comes from: see source.h. */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bytes.h"
#include "hash.h"
#include "records.h"

/* A slow producer's bytes are sent on when nothing more came for this long. */
enum { PAUSE_MS = 1, FILL_MOST_MS = 100, PIPE_BYTES = 1 << 20, CREDIT_US = 100000 };

static bool readable(const struct source *source, int wait_ms)
{
    struct pollfd polled = {source->fd, POLLIN, 0};
    return poll(&polled, 1, wait_ms) > 0;
}

/* Returns the bytes got; 0 at the end; -1 in trouble. */
static ssize_t read_some(struct source *source, uint8_t *into, size_t room)
{
    for (;;) {
        ssize_t got = read(source->fd, into, room);
        if (got >= 0)
            return got;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            readable(source, -1);
        else if (errno != EINTR)
            return fault(&source->worker->trouble, "cannot read %s: %m", source->name);
    }
}

/* Fills a slot, or what there is of it. Returns 0 at the end, -1 in trouble. */
static ssize_t fill(struct source *source, struct slot *slot, size_t room)
{
    size_t have = 0;
    int64_t since_us = now_us(), first_us = 0;
    while (have < room) {
        ssize_t got = read_some(source, slot->bytes + RECORD_BYTES + have,
                                room - have);
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        have += (size_t)got;
        if (have == room)
            break;
        first_us = first_us ? first_us : now_us();
        if (now_us() - first_us > FILL_MOST_MS * 1000 || !readable(source, PAUSE_MS))
            break;
    }
    source->worker->stream_us += now_us() - since_us;
    return (ssize_t)have;
}

static int make_record(struct source *source, struct slot *slot, size_t length)
{
    struct worker *worker = source->worker;
    uint64_t number = worker->count++;
    slot->length = (uint32_t)length + (worker->seal ? SEAL_BYTES : 0);
    record_put(slot->bytes, &(struct record){RECORD_DATA, slot->length, number});
    if (worker->seal && seal_close_record(worker->seal, slot->bytes, number) < 0)
        return fault(&worker->trouble, "OpenSSL cannot encrypt");
    return 0;
}

/* Sleeps until the rate allows more than these bytes. What a pause before them would have
 * allowed is lost, but for a tenth of a second. */
static void keep_rate(struct source *source, size_t length)
{
    int64_t now = now_us();
    if (source->due_us < (double)(now - CREDIT_US))
        source->due_us = (double)(now - CREDIT_US);
    source->due_us += (double)length * 1e6 / (double)source->rate;
    int64_t left_us = (int64_t)source->due_us - now;
    struct timespec nap = {left_us / 1000000, left_us % 1000000 * 1000};
    if (left_us > 0)
        nanosleep(&nap, NULL);
}

static size_t room_of(const struct source *source)
{
    size_t room = source->worker->ring->chunk;
    if (source->rate && source->rate / 10 < room)
        room = source->rate / 10 ? source->rate / 10 : 1;
    return room;
}

static bool written_since(const struct source *source, const struct stat *now)
{
    return now->st_mtim.tv_sec != source->written.tv_sec ||
           now->st_mtim.tv_nsec != source->written.tv_nsec;
}

/* Files in /proc say that they have 0 bytes, those in /sys 4096, whatever they have. */
static bool another_size(const struct source *source, uint64_t total,
                         const struct stat *now)
{
    uint64_t size = (uint64_t)source->size;
    if (now->st_size != source->size)
        return true;
    return size && total != size && (total > size || written_since(source, now));
}

static int check(struct source *source)
{
    struct stat now;
    uint64_t total = atomic_load(&source->worker->total);
    if (source->size < 0 || fstat(source->fd, &now) < 0)
        return 0;
    if (source->whole && another_size(source, total, &now))
        return fault(&source->worker->trouble,
                     "%s changed while it was read: it had %lld bytes, %llu were read, "
                     "it has %lld now", source->name, (long long)source->size,
                     (unsigned long long)total, (long long)now.st_size);
    return 0;
}

static int pass_on(struct source *source, XXH3_state_t *hash)
{
    struct worker *worker = source->worker;
    struct ring *ring = worker->ring;
    struct slot *slot;
    source->due_us = (double)now_us();
    while ((slot = ring_wait(ring, &ring->free, &worker->network_us))) {
        ssize_t length = fill(source, slot, room_of(source));
        if (length <= 0)
            return length < 0 ? -1 : check(source);
        if (worker->checksummed)
            XXH3_64bits_update(hash, slot->bytes + RECORD_BYTES, (size_t)length);
        if (make_record(source, slot, (size_t)length) < 0)
            return -1;
        atomic_fetch_add(&worker->total, (uint64_t)length);
        ring_put(ring, &ring->full, slot);
        ring_wake(ring);
        if (source->rate)
            keep_rate(source, (size_t)length);
    }
    return fault(&worker->trouble, "stopped");
}

static void *source_main(void *argument)
{
    struct source *source = argument;
    XXH3_state_t *hash = allocated(XXH3_createState());
    XXH3_64bits_reset(hash);
    pass_on(source, hash);
    source->checksum = source->worker->checksummed ? XXH3_64bits_digest(hash) : 0;
    XXH3_freeState(hash);
    ring_end(source->worker->ring);
    worker_over(source->worker);
    return NULL;
}

int source_start(struct source *source, struct trouble *trouble)
{
    struct stat state = {0};
    fcntl(source->fd, F_SETPIPE_SZ, PIPE_BYTES); /* what is not a pipe refuses */
    fstat(source->fd, &state);
    source->written = state.st_mtim;
    return worker_start(source->worker, source_main, source, trouble);
}
