/* rdrecv: see receive.h.
 *
 * The peer's thread (here) always takes what it gave credits for, however slow the
 * output is; the sink's thread writes it. Nothing is published, and no command sees an
 * end of file, before the end record came and agreed with what was written.
 */
#include "receive.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "link.h"
#include "lobby.h"
#include "signals.h"
#include "sink.h"
#include "stats.h"

/* A reader that has read enough, like head(1), may leave before the end record is here. */
enum { SETTLE_MS = 300, LEFT_MS = 500, PUBLISH_MS = 60000 };

struct receiver {
    const struct options *options;
    struct trouble trouble;
    struct key key;
    int signal_fd;
    struct lobby lobby;
    struct meeting meeting;
    struct transport *transport;
    struct link link;
    struct ring ring;
    struct seals seals;
    struct child child;
    struct target target;
    struct sink sink;
    struct stats stats;
    int64_t left_ms;             /* when the output's reader left; 0 = it has not */
    uint64_t taken, given, told; /* data records taken; credits given, and told of */
    uint64_t written;            /* bytes, when it was last looked at */
    int64_t done_ms;             /* when done was said */
    bool end_taken, done_said, bye;
};

/* Gives the transport every free slot: each is a credit. */
static int give(struct receiver *receiver)
{
    struct transport *transport = receiver->transport;
    struct slot *slot;
    while ((slot = ring_take(&receiver->ring, &receiver->ring.free))) {
        if (transport->kind->give(transport, slot, &receiver->trouble) < 0)
            return -1;
        receiver->given++;
    }
    /* A quarter of the ring at a time, unless the sender may be waiting for it. */
    uint64_t news = receiver->given - receiver->told;
    bool waits = receiver->told - receiver->taken < receiver->ring.count / 2;
    if (news == 0 || receiver->end_taken || (news < receiver->ring.count / 4 && !waits))
        return 0;
    int said = link_say(&receiver->link, RECORD_CREDIT, receiver->given,
                        &receiver->trouble);
    if (said == 0)
        receiver->told = receiver->link.said = receiver->given;
    return said < 0 ? -1 : 0;
}

static int open_output(struct receiver *receiver)
{
    const struct options *options = receiver->options;
    if (!options->command)
        return 0;
    if (child_open(&receiver->child, options->command, CHILD_CONSUMER,
                   &receiver->trouble) < 0)
        return -1;
    receiver->target.fd = receiver->child.fd;
    return 0;
}

/* Looks at where the stream is to go, as far as that is not a command's pipe. */
static int find_output(struct receiver *receiver)
{
    const struct options *options = receiver->options;
    receiver->target.fd = -1;
    if (!options->command)
        return target_find(&receiver->target, options->file, STDOUT_FILENO,
                           options->sync, &receiver->trouble);
    return options->sync ? troubled(&receiver->trouble, EXIT_USAGE,
                                    "--sync: what %.100s reads cannot be synced",
                                    options->command[0])
                         : 0;
}

/* Everything that the stream needs, once the peer is proven. */
static int begin(struct receiver *receiver)
{
    const struct options *options = receiver->options;
    struct trouble *trouble = &receiver->trouble;
    struct transport *transport = receiver->transport;
    uint32_t chunk = meeting_chunk(&receiver->meeting);
    link_open(&receiver->link, transport, options, receiver->signal_fd);
    bool sealed = meeting_protection(&receiver->meeting) != PROTECT_NOT;
    if (sealed && seals_open(&receiver->seals, &receiver->meeting, trouble) < 0)
        return -1;
    receiver->link.seals = sealed ? &receiver->seals : NULL;
    if (ring_open(&receiver->ring, receiver->meeting.mine.credits, chunk) < 0)
        return troubled(trouble, EXIT_FAULT, "no memory for buffers: %s",
                        strerror(errno));
    if (transport->kind->ring(transport, &receiver->ring, trouble) < 0)
        return -1;
    if (open_output(receiver) < 0)
        return -1;
    transport->data_most = chunk + (sealed ? SEAL_BYTES : 0);
    struct sink *sink = &receiver->sink;
    sink->target = &receiver->target;
    sink->ring = &receiver->ring;
    sink->seal = sealed ? &receiver->seals.data : NULL;
    sink->checksummed = meeting_checksum(&receiver->meeting);
    stats_open(&receiver->stats, options, -1);
    stats_say(&receiver->stats, "receiving from", transport, &receiver->meeting);
    return sink_start(sink, trouble) < 0 ? -1 : give(receiver);
}

static int refuse(struct receiver *receiver, const char *why)
{
    return troubled(&receiver->trouble, EXIT_FAULT, "refused what %s sent: %s",
                    receiver->transport->peer, why);
}

static int take_end(struct receiver *receiver, const struct transport_event *event)
{
    struct ending ending;
    if (event->record.number != receiver->taken)
        return refuse(receiver, "an end after another number of records than came");
    ending_get(&ending, event->body);
    receiver->end_taken = true;
    receiver->link.idle_ms = 0; /* no more data is to move */
    receiver->link.got++;
    sink_finish(&receiver->sink, &ending);
    return 0;
}

static int take_event(struct receiver *receiver, const struct transport_event *event)
{
    if (event->kind == EVENT_SENT)
        return 0;
    if (event->record.type == RECORD_BYE && receiver->done_said) {
        receiver->bye = true;
        return 0;
    }
    if (receiver->end_taken)
        return refuse(receiver, "a record after the end");
    if (event->kind == EVENT_DATA) {
        if (event->record.number != receiver->taken)
            return refuse(receiver, "data out of sequence");
        receiver->taken++;
        receiver->link.got++;
        if (receiver->taken > receiver->told)
            return refuse(receiver, "more data than it has credits for");
        ring_put(&receiver->ring, &receiver->ring.full, event->slot);
        return 0;
    }
    if (event->record.type == RECORD_END)
        return take_end(receiver, event);
    return refuse(receiver, "a record that is not a sender's");
}

static int say_done(struct receiver *receiver, struct trouble *trouble)
{
    struct ending ending = {atomic_load(&receiver->sink.total), receiver->target.sync};
    int said = link_say_ending(&receiver->link, RECORD_DONE, receiver->taken, &ending,
                               trouble);
    receiver->done_said = said == 0;
    receiver->link.said += said == 0;
    receiver->done_ms = now_ms();
    return said < 0 ? -1 : 0;
}

/* A command that left its pipe is about to end, as a rule, and its status says more
 * than the pipe does. */
static int hear_child(struct receiver *receiver)
{
    struct child *child = &receiver->child;
    int64_t end_ms = now_ms() + SETTLE_MS, left_ms;
    while (child->pid && !child_ended(child) && (left_ms = end_ms - now_ms()) > 0) {
        struct pollfd polled = {child->pid_fd, POLLIN, 0};
        poll(&polled, 1, child->pid_fd < 0 ? 10 : (int)left_ms);
    }
    return child_check(child, &receiver->trouble);
}

static int move(struct receiver *receiver)
{
    struct sink *sink = &receiver->sink;
    uint64_t written = atomic_load(&sink->total);
    if (child_check(&receiver->child, &receiver->trouble) < 0 || give(receiver) < 0)
        return -1;
    if (written != receiver->written) /* a slow writer is not silence */
        receiver->link.moved_ms = now_ms();
    receiver->written = written;
    if (!atomic_load(&sink->over))
        return 0;
    if (sink->trouble.status)
        return hear_child(receiver) < 0
                   ? -1
                   : troubled(&receiver->trouble, sink->trouble.status, "%s",
                              sink->trouble.text);
    if (receiver->child.pid && receiver->child.fd >= 0)
        child_let_end(&receiver->child);
    bool consumed = !receiver->child.pid || receiver->child.status == 0;
    return consumed && !receiver->done_said ? say_done(receiver, &receiver->trouble) : 0;
}

/* It is no fault if nothing more comes for it: as in a shell, where a writer that has
 * ended never hears of it. What does come, the sink cannot write. */
static int check_reader(struct receiver *receiver, const struct pollfd *output)
{
    if (!receiver->left_ms && (output->revents & (POLLERR | POLLHUP)))
        receiver->left_ms = now_ms();
    if (!receiver->left_ms || receiver->end_taken ||
        now_ms() - receiver->left_ms < LEFT_MS)
        return 0;
    if (hear_child(receiver) < 0)
        return -1;
    return troubled(&receiver->trouble, EXIT_FAULT, "the reader of %s left before the end",
                    receiver->options->command ? receiver->options->command[0]
                                               : "the output");
}

static int receive_all(struct receiver *receiver)
{
    struct trouble *trouble = &receiver->trouble;
    for (;;) {
        struct transport_event event;
        struct pollfd extra[] = {
            {receiver->ring.wake_fd, POLLIN, 0},
            {receiver->child.pid_fd, POLLIN, 0},
            {receiver->left_ms ? -1 : atomic_load(&receiver->sink.fd), 0, 0},
        };
        if (link_wait(&receiver->link, extra, 3, trouble) < 0)
            return -1;
        if (extra[0].revents)
            ring_woken(&receiver->ring);
        int got;
        while ((got = link_next(&receiver->link, &event, trouble)) > 0)
            if (take_event(receiver, &event) < 0 || receiver->bye)
                return receiver->bye ? 0 : -1;
        if (got < 0)
            return -1;
        if (move(receiver) < 0 || check_reader(receiver, &extra[2]) < 0 ||
            link_tick(&receiver->link, trouble) < 0)
            return -1;
        if (receiver->done_said && now_ms() - receiver->done_ms > FINISH_MOST_MS)
            return 0; /* its goodbye was lost, and nothing else */
        stats_progress(&receiver->stats, atomic_load(&receiver->sink.total));
    }
}

static void await_sink(struct receiver *receiver, int limit_ms)
{
    for (int64_t end_ms = now_ms() + limit_ms;
         !atomic_load(&receiver->sink.over) && now_ms() < end_ms;) {
        struct pollfd polled = {receiver->ring.wake_fd, POLLIN, 0};
        poll(&polled, 1, 10);
        ring_woken(&receiver->ring);
    }
}

/* Trouble that came when the file was being put in its place, and there it is. */
static bool published(struct receiver *receiver)
{
    struct sink *sink = &receiver->sink;
    if (!sink->started || sink_give_up(sink) || receiver->options->command)
        return false;
    await_sink(receiver, PUBLISH_MS);
    if (!atomic_load(&sink->over) || sink->trouble.status)
        return false;
    struct trouble ignored = {0};
    if (!receiver->done_said && !receiver->transport->peer_left)
        say_done(receiver, &ignored);
    receiver->done_said = true;
    return true;
}

/* In trouble: the command is ended before its pipe is, the file is not published. */
static void part(struct receiver *receiver)
{
    struct sink *sink = &receiver->sink;
    if (!receiver->transport)
        return;
    if (!receiver->trouble.status || published(receiver)) {
        receiver->transport->kind->finish(receiver->transport, FINISH_MS);
        return;
    }
    child_signal(&receiver->child, SIGTERM);
    link_abort(&receiver->link, &receiver->trouble);
    child_end(&receiver->child);
    if (!sink->started)
        return;
    ring_end(&receiver->ring);
    await_sink(receiver, SETTLE_MS);
}

static void receiver_close(struct receiver *receiver)
{
    struct sink *sink = &receiver->sink;
    struct trouble *trouble = &receiver->trouble;
    struct waits waits = {0};
    bool settled = !sink->started || atomic_load(&sink->over);
    if (settled)
        waits = (struct waits){0, sink->network_us, sink->write_us};
    /* What was published and acknowledged stays good, whatever came after it. */
    if (trouble->status && receiver->done_said && trouble->status < 128) {
        if (receiver->options->verbose)
            say("all is written, but the sender did not say goodbye: %s", trouble->text);
        *trouble = (struct trouble){0};
    }
    if (trouble->status && !heard_in_chain(trouble, receiver->options))
        say("%s", trouble->text);
    stats_close(&receiver->stats, receiver->transport, atomic_load(&sink->total), &waits,
                trouble);
    if (settled) {
        sink_close(sink);
        target_close(&receiver->target);
    } else {
        target_discard(&receiver->target);
    }
    child_close(&receiver->child);
    key_close(&receiver->key);
    if (!settled)
        return; /* its thread waits in write(2) and uses what is left */
    seals_close(&receiver->seals);
    transport_close(receiver->transport);
    ring_close(&receiver->ring);
}

int receive_stream(const struct options *options)
{
    static struct receiver receiver; /* its thread may outlive this function */
    struct trouble *trouble = &receiver.trouble;
    receiver.options = options;
    child_init(&receiver.child);
    atomic_store(&receiver.sink.fd, -1);
    receiver.lobby.listen_fd = -1;
    receiver.signal_fd = -1;
    stats_init(&receiver.stats, options);
    if (key_open(&receiver.key, options->key_file, options->key_fd, trouble) == 0 &&
        find_output(&receiver) == 0) { /* a signal may end that: a key may be waited for */
        receiver.signal_fd = signals_open();
        if (receiver.signal_fd < 0)
            troubled(trouble, EXIT_FAULT, "signalfd: %s", strerror(errno));
        else if (lobby_open(&receiver.lobby, options, &receiver.key, receiver.signal_fd,
                            trouble) == 0)
            receiver.transport =
                lobby_meet(&receiver.lobby, options->file ? -1 : STDOUT_FILENO,
                           &receiver.meeting, trouble);
    }
    lobby_close(&receiver.lobby);
    if (receiver.transport && begin(&receiver) == 0)
        receive_all(&receiver);
    part(&receiver);
    receiver_close(&receiver);
    return trouble->status;
}
