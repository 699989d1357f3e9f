/* rdrecv: receives a stream from one sender and writes it.
 *
 * Only the worker thread touches the output. It writes the ring's slots and verifies that the
 * received data is the data sent. The peer's thread always receives the data for which it gave
 * credits, however slow the output is. A file is published, and a command sees an end of file, only
 * after the end record has arrived and matches the written data. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "descriptors.h"
#include "end.h"
#include "connect.h"
#include "signals.h"
#include "target.h"

/* A reader that has read enough, like head(1), may close before the end record arrives. */
enum { LEFT_MS = 500, PUBLISH_MS = 60000, PIPE_BYTES = 1 << 20 };

/* Publication state. The first to set it wins: the worker that publishes, or the thread that gives
 * up. */
enum fate { FATE_OPEN, FATE_GIVEN_UP, FATE_PUBLISHED };

struct receiver {
    struct end end; /* first: both structs have the same address */
    struct pending_peers pending;
    struct target target;
    struct ending ending; /* valid once the ring has ended */
    bool end_taken;       /* `ending` is final */
    atomic_int writing_fd; /* -1 before and after the writing */
    atomic_int fate;

    int64_t left_ms;             /* time the output's reader closed; 0 = still open */
    /* data records taken; credits given; credits sent to the peer */
    uint64_t taken, given, told;
    uint64_t written;            /* bytes written, at the last check */
    int64_t done_ms;             /* time the done record was sent */
    bool done_said;
};

/* The worker */

static const char *name_of(const struct receiver *receiver)
{
    return receiver->target.name ? receiver->target.name : "the output";
}

/* Return 0 if a failed write is worth a retry. */
static int retry(struct receiver *receiver)
{
    struct error *error = &receiver->end.worker.error;
    struct pollfd polled = {receiver->target.fd, POLLOUT, 0};
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        poll(&polled, 1, -1);
    else if (errno == EPIPE)
        fault(error, "the reader of %s left before the end", name_of(receiver));
    else if (errno != EINTR)
        fault(error, "cannot write %s: %m", name_of(receiver));
    return error->status ? -1 : 0;
}

static int write_all(struct receiver *receiver, const uint8_t *from, size_t length)
{
    while (length) {
        ssize_t done = write(receiver->target.fd, from, length);
        if (done == 0)
            errno = ENOSPC; /* the device is full */
        if (done <= 0 && retry(receiver) < 0)
            return -1;
        from += done > 0 ? done : 0;
        length -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

static int take(struct receiver *receiver, struct slot *slot, XXH3_state_t *hash)
{
    struct worker *worker = &receiver->end.worker;
    uint8_t *payload = slot->bytes + RECORD_BYTES;
    uint32_t length = slot->length;
    if (receiver->end.link.seals) {
        if (length <= SEAL_BYTES ||
            seal_open_record(&receiver->end.seals.data, slot->bytes, worker->count++) < 0)
            return fault(&worker->error, "the stream was changed on its way");
        length -= SEAL_BYTES;
    }
    if (receiver->end.checksummed)
        XXH3_64bits_update(hash, payload, length);
    int64_t since_us = now_us();
    if (write_all(receiver, payload, length) < 0)
        return -1;
    worker->stream_us += now_us() - since_us;
    atomic_fetch_add(&worker->total, length);
    return 0;
}

static int judge(struct receiver *receiver, uint64_t checksum)
{
    struct worker *worker = &receiver->end.worker;
    uint64_t total = atomic_load(&worker->total);
    if (!receiver->end_taken)
        return fault(&worker->error, "stopped");
    if (receiver->ending.total != total)
        return fault(&worker->error, "%llu bytes came of the %llu that were sent",
                     (unsigned long long)total, (unsigned long long)receiver->ending.total);
    if (receiver->end.checksummed && receiver->ending.value != checksum)
        return fault(&worker->error,
                     "the checksum is %016llx, sent was %016llx: the network or the "
                     "memory of a machine is faulty", (unsigned long long)checksum,
                     (unsigned long long)receiver->ending.value);
    return 0;
}

static bool settle(struct receiver *receiver, enum fate fate)
{
    int undecided = FATE_OPEN;
    return atomic_compare_exchange_strong(&receiver->fate, &undecided, fate);
}

static void write_out(struct end *end, XXH3_state_t *hash)
{
    struct receiver *receiver = (struct receiver *)end;
    struct worker *worker = &end->worker;
    struct target *target = &receiver->target;
    struct ring *ring = &end->ring;
    struct slot *slot;
    if (target_open(target, &worker->error) < 0)
        return;
    fcntl(target->fd, F_SETPIPE_SZ, PIPE_BYTES); /* fails for anything but a pipe */
    atomic_store(&receiver->writing_fd, target->fd);
    while ((slot = ring_wait(ring, &ring->full, &worker->network_us))) {
        if (take(receiver, slot, hash) < 0)
            return;
        ring_put(ring, &ring->free, slot);
        ring_wake(ring);
    }
    if (judge(receiver, XXH3_64bits_digest(hash)) < 0)
        return;
    atomic_store(&receiver->writing_fd, -1);
    if (target_sync(target, &worker->error) < 0)
        return;
    if (!settle(receiver, FATE_PUBLISHED))
        fault(&worker->error, "stopped");
    else
        target_publish(target, &worker->error);
}

/* The peer's thread */

/* Give every free slot to the transport: one credit each. */
static int give(struct receiver *receiver)
{
    struct end *end = &receiver->end;
    struct ring *ring = &end->ring;
    struct slot *slot;
    while ((slot = ring_take(ring, &ring->free))) {
        if (end->transport->kind->give(end->transport, slot, &end->error) < 0)
            return -1;
        receiver->given++;
    }
    /* Send credits for a quarter of the ring at a time, earlier if the sender may be waiting. */
    uint64_t news = receiver->given - receiver->told;
    bool waits = receiver->told - receiver->taken < ring->count / 2;
    if (news == 0 || receiver->end_taken || (news < ring->count / 4 && !waits))
        return 0;
    int said = link_say(&end->link, RECORD_CREDIT, receiver->given, NULL, &end->error);
    if (said == 0)
        receiver->told = end->link.said = receiver->given;
    return said < 0 ? -1 : 0;
}

/* Check the output, unless it is a command's pipe. */
static int find_output(struct receiver *receiver)
{
    const struct options *options = receiver->end.options;
    if (!options->command)
        return target_find(&receiver->target, options->file, STDOUT_FILENO,
                           options->sync, &receiver->end.error);
    return options->sync ? fault_status(&receiver->end.error, EXIT_USAGE,
                                    "--sync: what %.100s reads cannot be synced",
                                    options->command[0])
                         : 0;
}

static int begin(struct receiver *receiver)
{
    struct end *end = &receiver->end;
    if (end_open(end, -1) < 0)
        return -1;
    if (end->options->command)
        receiver->target.fd = end->child.fd;
    end->transport->data_most = end->ring.chunk + (end->link.seals ? SEAL_BYTES : 0);
    return worker_start(end, write_out) < 0 ? -1 : give(receiver);
}

static int refuse(struct receiver *receiver, const char *why)
{
    return transport_refuse(receiver->end.transport, why, &receiver->end.error);
}

static int take_end(struct receiver *receiver, const struct transport_event *event)
{
    if (event->record.number != receiver->taken)
        return refuse(receiver, "an end after another number of records than came");
    ending_get(&receiver->ending, event->body);
    receiver->end_taken = true;
    receiver->end.link.idle_ms = 0; /* no more data expected */
    receiver->end.link.got++;
    ring_end(&receiver->end.ring);
    return 0;
}

static int take_event(struct end *end, const struct transport_event *event)
{
    struct receiver *receiver = (struct receiver *)end;
    if (event->kind == EVENT_SENT)
        return 0;
    if (event->record.type == RECORD_BYE && receiver->done_said) {
        end->done = true;
        return 0;
    }
    if (receiver->end_taken)
        return refuse(receiver, "a record after the end");
    if (event->kind == EVENT_DATA) {
        if (event->record.number != receiver->taken)
            return refuse(receiver, "data out of sequence");
        receiver->taken++;
        receiver->end.link.got++;
        if (receiver->taken > receiver->told)
            return refuse(receiver, "more data than it has credits for");
        ring_put(&receiver->end.ring, &receiver->end.ring.full, event->slot);
        return 0;
    }
    if (event->record.type == RECORD_END)
        return take_end(receiver, event);
    return refuse(receiver, "a record that is not a sender's");
}

static int say_done(struct receiver *receiver, struct error *error)
{
    struct end *end = &receiver->end;
    struct ending ending = {atomic_load(&end->worker.total), receiver->target.sync};
    int said = link_say(&end->link, RECORD_DONE, receiver->taken, &ending, error);
    receiver->done_said = said == 0;
    end->link.said += said == 0;
    receiver->done_ms = now_ms();
    return said < 0 ? -1 : 0;
}

/* Wait for a command that closed its pipe. It is usually about to exit, and its status is more
 * precise than the pipe error. */
static int hear_child(struct receiver *receiver)
{
    struct child *child = &receiver->end.child;
    if (child->pid)
        child_wait(child, SETTLE_MS);
    return child_check(child, &receiver->end.error);
}

/* Report an output reader that closed early. It is no error if the end record arrives within
 * LEFT_MS, without more data: in a shell, too, a writer that has ended does not notice a closed
 * reader. If more data arrives, the worker's write fails. */
static int check_reader(struct receiver *receiver)
{
    struct end *end = &receiver->end;
    if (!receiver->left_ms && (end->output_events & (POLLERR | POLLHUP)))
        receiver->left_ms = now_ms();
    end->output_fd = receiver->left_ms ? -1 : atomic_load(&receiver->writing_fd);
    bool early = now_ms() - receiver->left_ms < LEFT_MS;
    if (end->options->rsh) /* only a command's end counts; stdout may be closed, as with ssh(1) */
        early = !end->options->command;
    if (!receiver->left_ms || receiver->end_taken || early)
        return 0;
    if (hear_child(receiver) < 0)
        return -1;
    return fault(&end->error, "the reader of %s left before the end",
                 end->options->command ? end->options->command[0] : "the output");
}

static int go_on(struct receiver *receiver)
{
    struct end *end = &receiver->end;
    struct worker *worker = &end->worker;
    struct child *child = &end->child;
    uint64_t written = atomic_load(&worker->total);
    if (child_check(child, &end->error) < 0 || give(receiver) < 0)
        return -1;
    if (written != receiver->written) /* a slow writer is not idle */
        end->link.moved_ms = now_ms();
    receiver->written = written;
    if (!atomic_load(&worker->over))
        return 0;
    if (worker->error.status && hear_child(receiver) == 0)
        end->error = worker->error;
    if (worker->error.status)
        return -1;
    if (child->pid && child->fd >= 0)
        child_let_end(child);
    bool consumed = !child->pid || child->status == 0;
    if (consumed && !receiver->done_said)
        return say_done(receiver, &end->error);
    /* Stop waiting if only the peer's bye was lost. */
    end->done = receiver->done_said && now_ms() - receiver->done_ms > FINISH_MOST_MS;
    return 0;
}

static int move(struct end *end)
{
    struct receiver *receiver = (struct receiver *)end;
    return go_on(receiver) < 0 || check_reader(receiver) < 0 ? -1 : 0;
}

/* Return true if the file is in place although an error occurred while it was being published. */
static bool published(struct receiver *receiver)
{
    struct worker *worker = &receiver->end.worker;
    struct error ignored = {0};
    if (!worker->started || settle(receiver, FATE_GIVEN_UP) || receiver->end.options->command)
        return false;
    worker_await(&receiver->end, PUBLISH_MS);
    if (!atomic_load(&worker->over) || worker->error.status)
        return false;
    if (!receiver->done_said && !receiver->end.transport->peer_left)
        say_done(receiver, &ignored);
    receiver->done_said = true;
    return true;
}

/* Clean up after an error. The command is ended before its pipe is closed; the file is not
 * published. */
static void part(struct receiver *receiver)
{
    struct end *end = &receiver->end;
    if (!end->transport)
        return;
    if (!end->error.status || published(receiver)) {
        transport_finish(end->transport, FINISH_MS);
        return;
    }
    /* A command that exited well had all that it needed: the chain judges that. */
    end->error.heard |= end->child.status == 0;
    child_signal(&end->child, SIGTERM);
    link_abort(&end->link, &end->error);
    child_end(&end->child);
    end_settle(end);
}

static int receiver_close(struct receiver *receiver)
{
    struct error *error = &receiver->end.error;
    /* A published and acknowledged stream is a success, even if an error follows. */
    if (error->status && receiver->done_said && error->status < 128) {
        if (receiver->end.options->verbose)
            say("all is written, but the sender did not say goodbye: %s", error->text);
        *error = (struct error){0};
    }
    if (worker_join(&receiver->end))
        target_close(&receiver->target);
    else
        target_discard(&receiver->target);
    return end_close(&receiver->end);
}

static int receive_stream(const struct options *options)
{
    static struct receiver receiver = { /* static: the thread may outlive this function */
        .pending = {.listen_fd = -1}, .target = TARGET_NONE, .writing_fd = -1};
    struct end *end = &receiver.end;
    if (end_init(end, options) == 0 &&
        /* may be ended by a signal, like the reading of the key */
        find_output(&receiver) == 0 &&
        signals_open(&end->error) == 0 &&
        pending_open(&receiver.pending, options, &end->key, &end->error) == 0)
        end->transport = pending_accept(&receiver.pending, options->file ? -1 : STDOUT_FILENO,
                                    &end->handshake, &end->error);
    pending_close(&receiver.pending);
    if (end->transport && begin(&receiver) == 0)
        end_run(end, take_event, move);
    part(&receiver);
    return receiver_close(&receiver);
}

int main(int argc, char **argv)
{
    standard_open();
    return options_main(false, argc, argv, receive_stream);
}
