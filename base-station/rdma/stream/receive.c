/* rdrecv: takes a stream from one sender and writes it.
 *
 * The peer's thread (here) always takes what it gave credits for, however slow the
 * output is; the sink's thread writes it. Nothing is published, and no command sees an
 * end of file, before the end record came and agreed with what was written.
 */
#include <signal.h>
#include <unistd.h>

#include "end.h"
#include "lobby.h"
#include "signals.h"
#include "sink.h"

/* A reader that has read enough, like head(1), may leave before the end record is here. */
enum { LEFT_MS = 500, PUBLISH_MS = 60000 };

struct receiver {
    struct end end;
    struct lobby lobby;
    struct target target;
    struct sink sink;
    int64_t left_ms;             /* when the output's reader left; 0 = it has not */
    uint64_t taken, given, told; /* data records taken; credits given, and told of */
    uint64_t written;            /* bytes, when it was last looked at */
    int64_t done_ms;             /* when done was said */
    bool end_taken, done_said, bye;
};

/* Gives the transport every free slot: each is a credit. */
static int give(struct receiver *receiver)
{
    struct end *end = &receiver->end;
    struct ring *ring = &end->ring;
    struct slot *slot;
    while ((slot = ring_take(ring, &ring->free))) {
        if (end->transport->kind->give(end->transport, slot, &end->trouble) < 0)
            return -1;
        receiver->given++;
    }
    /* A quarter of the ring at a time, unless the sender may be waiting for it. */
    uint64_t news = receiver->given - receiver->told;
    bool waits = receiver->told - receiver->taken < ring->count / 2;
    if (news == 0 || receiver->end_taken || (news < ring->count / 4 && !waits))
        return 0;
    int said = link_say(&end->link, RECORD_CREDIT, receiver->given, &end->trouble);
    if (said == 0)
        receiver->told = end->link.said = receiver->given;
    return said < 0 ? -1 : 0;
}

/* Looks at where the stream is to go, as far as that is not a command's pipe. */
static int find_output(struct receiver *receiver)
{
    const struct options *options = receiver->end.options;
    receiver->target.fd = -1;
    if (!options->command)
        return target_find(&receiver->target, options->file, STDOUT_FILENO,
                           options->sync, &receiver->end.trouble);
    return options->sync ? troubled(&receiver->end.trouble, EXIT_USAGE,
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
    receiver->sink.worker = &end->worker;
    receiver->sink.target = &receiver->target;
    return sink_start(&receiver->sink, &end->trouble) < 0 ? -1 : give(receiver);
}

static int refuse(struct receiver *receiver, const char *why)
{
    return fault(&receiver->end.trouble, "refused what %s sent: %s",
                 receiver->end.transport->peer, why);
}

static int take_end(struct receiver *receiver, const struct transport_event *event)
{
    struct ending ending;
    if (event->record.number != receiver->taken)
        return refuse(receiver, "an end after another number of records than came");
    ending_get(&ending, event->body);
    receiver->end_taken = true;
    receiver->end.link.idle_ms = 0; /* no more data is to move */
    receiver->end.link.got++;
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

static int say_done(struct receiver *receiver, struct trouble *trouble)
{
    struct end *end = &receiver->end;
    struct ending ending = {atomic_load(&end->worker.total), receiver->target.sync};
    int said = link_say_ending(&end->link, RECORD_DONE, receiver->taken, &ending, trouble);
    receiver->done_said = said == 0;
    end->link.said += said == 0;
    receiver->done_ms = now_ms();
    return said < 0 ? -1 : 0;
}

/* A command that left its pipe is about to end, as a rule, and its status says more
 * than the pipe does. */
static int hear_child(struct receiver *receiver)
{
    struct child *child = &receiver->end.child;
    if (child->pid)
        child_wait(child, SETTLE_MS);
    return child_check(child, &receiver->end.trouble);
}

static int move(struct receiver *receiver)
{
    struct end *end = &receiver->end;
    struct worker *worker = &end->worker;
    struct child *child = &end->child;
    uint64_t written = atomic_load(&worker->total);
    if (child_check(child, &end->trouble) < 0 || give(receiver) < 0)
        return -1;
    if (written != receiver->written) /* a slow writer is not silence */
        end->link.moved_ms = now_ms();
    receiver->written = written;
    if (!atomic_load(&worker->over))
        return 0;
    if (worker->trouble.status && hear_child(receiver) == 0)
        end->trouble = worker->trouble;
    if (worker->trouble.status)
        return -1;
    if (child->pid && child->fd >= 0)
        child_let_end(child);
    bool consumed = !child->pid || child->status == 0;
    return consumed && !receiver->done_said ? say_done(receiver, &end->trouble) : 0;
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
    char **command = receiver->end.options->command;
    return fault(&receiver->end.trouble, "the reader of %s left before the end",
                 command ? command[0] : "the output");
}

static int receive_all(struct receiver *receiver)
{
    struct end *end = &receiver->end;
    for (;;) {
        struct transport_event event;
        struct pollfd output = {
            receiver->left_ms ? -1 : atomic_load(&receiver->sink.fd), 0, 0};
        if (end_wait(end, &output) < 0)
            return -1;
        int got;
        while ((got = link_next(&end->link, &event, &end->trouble)) > 0)
            if (take_event(receiver, &event) < 0 || receiver->bye)
                return receiver->bye ? 0 : -1;
        if (got < 0 || move(receiver) < 0 || check_reader(receiver, &output) < 0 ||
            link_tick(&end->link, &end->trouble) < 0)
            return -1;
        if (receiver->done_said && now_ms() - receiver->done_ms > FINISH_MOST_MS)
            return 0; /* its goodbye was lost, and nothing else */
        stats_progress(&end->stats, atomic_load(&end->worker.total));
    }
}

/* Trouble that came when the file was being put in its place, and there it is. */
static bool published(struct receiver *receiver)
{
    struct worker *worker = &receiver->end.worker;
    struct trouble ignored = {0};
    if (!worker->started || sink_give_up(&receiver->sink) ||
        receiver->end.options->command)
        return false;
    worker_await(worker, PUBLISH_MS);
    if (!atomic_load(&worker->over) || worker->trouble.status)
        return false;
    if (!receiver->done_said && !receiver->end.transport->peer_left)
        say_done(receiver, &ignored);
    receiver->done_said = true;
    return true;
}

/* In trouble: the command is ended before its pipe is, the file is not published. */
static void part(struct receiver *receiver)
{
    struct end *end = &receiver->end;
    if (!end->transport)
        return;
    if (!end->trouble.status || published(receiver)) {
        transport_finish(end->transport, FINISH_MS);
        return;
    }
    child_signal(&end->child, SIGTERM);
    link_abort(&end->link, &end->trouble);
    child_end(&end->child);
    end_settle(end);
}

static int receiver_close(struct receiver *receiver)
{
    struct trouble *trouble = &receiver->end.trouble;
    /* What was published and acknowledged stays good, whatever came after it. */
    if (trouble->status && receiver->done_said && trouble->status < 128) {
        if (receiver->end.options->verbose)
            say("all is written, but the sender did not say goodbye: %s", trouble->text);
        *trouble = (struct trouble){0};
    }
    if (worker_join(&receiver->end.worker))
        target_close(&receiver->target);
    else
        target_discard(&receiver->target);
    return end_close(&receiver->end);
}

int receive_stream(const struct options *options)
{
    static struct receiver receiver; /* its thread may outlive this function */
    struct end *end = &receiver.end;
    atomic_store(&receiver.sink.fd, -1);
    receiver.lobby.listen_fd = -1;
    if (end_init(end, options) == 0 &&
        find_output(&receiver) == 0 && /* which a signal may end, as the key's reading */
        signals_open(&end->trouble) == 0 &&
        lobby_open(&receiver.lobby, options, &end->key, &end->trouble) == 0)
        end->transport = lobby_meet(&receiver.lobby, options->file ? -1 : STDOUT_FILENO,
                                    &end->meeting, &end->trouble);
    lobby_close(&receiver.lobby);
    if (end->transport && begin(&receiver) == 0)
        receive_all(&receiver);
    part(&receiver);
    return receiver_close(&receiver);
}
