/* rdsend: see send.h.
 *
 * The peer's thread (here) sends what the source's thread made ready, as far as the
 * receiver has given credits. The end record goes out only when the input ended well:
 * at the end of a file or of stdin, or when the producer has exited with 0.
 */
#include "send.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"
#include "dial.h"
#include "link.h"
#include "signals.h"
#include "source.h"
#include "stats.h"

enum { SETTLE_MS = 300 };

struct sender {
    const struct options *options;
    struct trouble trouble;
    struct key key;
    char name[200]; /* of the input, for messages */
    int input_fd;  /* of FILE; -1 without */
    int signal_fd; /* -1 before it dials */
    struct meeting meeting;
    struct transport *transport;
    struct link link;
    struct ring ring;
    struct seals seals;
    struct child child;
    struct source source;
    struct stats stats;
    uint64_t credits, posted;
    int64_t end_ms; /* when the end went out; 0 = it has not */
    bool done;
};

static int open_input(struct sender *sender)
{
    const char *file = sender->options->file;
    struct stat state;
    if (sender->options->command)
        return 0;
    if (file) {
        do /* a FIFO's open waits for its writer; nobody waits for us yet */
            sender->input_fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        while (sender->input_fd < 0 && errno == EINTR);
        if (sender->input_fd < 0)
            return troubled(&sender->trouble, EXIT_FAULT, "cannot open %s: %s",
                            sender->name, strerror(errno));
    }
    int fd = file ? sender->input_fd : STDIN_FILENO;
    bool closed = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY; /* see standard.h */
    errno = EBADF;
    if (closed || fstat(fd, &state) < 0)
        return troubled(&sender->trouble, EXIT_FAULT, "cannot use stdin: %s",
                        strerror(errno));
    if (S_ISDIR(state.st_mode))
        return troubled(&sender->trouble, EXIT_FAULT,
                        "%s is a directory: rdcp -r copies trees", sender->name);
    sender->source.size = S_ISREG(state.st_mode) ? state.st_size : -1;
    sender->source.whole = file && S_ISREG(state.st_mode);
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return 0;
}

/* Everything that the stream needs, once the peer is proven. */
static int begin(struct sender *sender)
{
    const struct options *options = sender->options;
    struct trouble *trouble = &sender->trouble;
    struct transport *transport = sender->transport;
    link_open(&sender->link, transport, options, sender->signal_fd);
    bool sealed = meeting_protection(&sender->meeting) != PROTECT_NOT;
    if (sealed && seals_open(&sender->seals, &sender->meeting, trouble) < 0)
        return -1;
    sender->link.seals = sealed ? &sender->seals : NULL;
    if (ring_open(&sender->ring, sender->meeting.mine.credits,
                  meeting_chunk(&sender->meeting)) < 0)
        return troubled(trouble, EXIT_FAULT, "no memory for buffers: %s",
                        strerror(errno));
    if (transport->kind->ring(transport, &sender->ring, trouble) < 0)
        return -1;
    if (options->command &&
        child_open(&sender->child, options->command, CHILD_PRODUCER, trouble) < 0)
        return -1;
    struct source *source = &sender->source;
    source->fd = options->command ? sender->child.fd
                 : options->file  ? sender->input_fd
                                  : STDIN_FILENO;
    source->name = sender->name;
    source->ring = &sender->ring;
    source->seal = sealed ? &sender->seals.data : NULL;
    source->checksummed = meeting_checksum(&sender->meeting);
    source->rate = options->rate;
    stats_open(&sender->stats, options, source->size);
    stats_say(&sender->stats, "sending to", transport, &sender->meeting);
    return source_start(source, trouble);
}

static int take_done(struct sender *sender, const struct transport_event *event)
{
    struct ending ending;
    if (!sender->end_ms || event->record.number != sender->source.count)
        return troubled(&sender->trouble, EXIT_FAULT,
                        "the other end claims to be done before the end");
    ending_get(&ending, event->body);
    if (ending.total != atomic_load(&sender->source.total))
        return troubled(&sender->trouble, EXIT_FAULT,
                        "the other end wrote another number of bytes than were sent");
    sender->done = sender->child.whole = true;
    return 0;
}

static int take_event(struct sender *sender, const struct transport_event *event)
{
    if (event->kind == EVENT_SENT) {
        sender->link.said++;
        ring_put(&sender->ring, &sender->ring.free, event->slot);
        return 0;
    }
    if (event->kind == EVENT_RECORD && event->record.type == RECORD_CREDIT) {
        if (event->record.number < sender->credits ||
            event->record.number - sender->posted > CREDITS_MOST)
            return troubled(&sender->trouble, EXIT_FAULT,
                            "refused what %s sent: %llu credits after %llu",
                            sender->transport->peer,
                            (unsigned long long)event->record.number,
                            (unsigned long long)sender->credits);
        sender->credits = sender->link.got = event->record.number;
        sender->link.moved_ms = now_ms();
        return 0;
    }
    if (event->kind == EVENT_RECORD && event->record.type == RECORD_DONE)
        return take_done(sender, event);
    return troubled(&sender->trouble, EXIT_FAULT,
                    "refused what %s sent: a record that is not a receiver's",
                    sender->transport->peer);
}

static int post_data(struct sender *sender)
{
    struct slot *slot;
    while (sender->posted < sender->credits &&
           (slot = ring_take(&sender->ring, &sender->ring.full))) {
        if (sender->transport->kind->post(sender->transport, slot, &sender->trouble) < 0)
            return -1;
        sender->posted++;
        sender->link.moved_ms = now_ms();
    }
    return 0;
}

/* 0: not yet, or it is out; -1: trouble. */
static int post_end(struct sender *sender)
{
    struct source *source = &sender->source;
    struct ending ending = {atomic_load(&source->total), source->checksum};
    int said = link_say_ending(&sender->link, RECORD_END, source->count, &ending,
                               &sender->trouble);
    if (said == 0) {
        sender->link.said++;
        sender->link.idle_ms = 0; /* no more data is to move */
        sender->end_ms = now_ms();
    }
    return said < 0 ? -1 : 0;
}

static int move(struct sender *sender)
{
    struct source *source = &sender->source;
    if (child_check(&sender->child, &sender->trouble) < 0 || post_data(sender) < 0)
        return -1;
    if (!atomic_load(&source->over))
        return 0;
    if (source->trouble.status)
        return troubled(&sender->trouble, source->trouble.status, "%s",
                        source->trouble.text);
    bool produced = !sender->child.pid || sender->child.status == 0;
    const struct transport_kind *kind = sender->transport->kind;
    bool sent = ring_drained(&sender->ring) && sender->posted == source->count &&
                (kind->ordered || !kind->sending(sender->transport));
    if (sent && produced && !sender->end_ms)
        return post_end(sender);
    int64_t limit_ms = sender->options->finish_ms;
    if (sender->end_ms && limit_ms && now_ms() - sender->end_ms > limit_ms)
        return troubled(&sender->trouble, EXIT_FAULT,
                        "no confirmation for %g s (--finish-timeout)",
                        (double)limit_ms / 1000);
    return 0;
}

static int send_all(struct sender *sender)
{
    struct trouble *trouble = &sender->trouble;
    for (;;) {
        struct transport_event event;
        struct pollfd extra[] = {
            {sender->ring.wake_fd, POLLIN, 0},
            {sender->child.pid_fd, POLLIN, 0},
        };
        if (link_wait(&sender->link, extra, 2, trouble) < 0)
            return -1;
        if (extra[0].revents)
            ring_woken(&sender->ring);
        uint64_t posted;
        do {
            int got;
            while ((got = link_next(&sender->link, &event, trouble)) > 0)
                if (take_event(sender, &event) < 0)
                    return -1;
                else if (sender->done)
                    return 0;
            posted = sender->posted;
            if (got < 0 || move(sender) < 0)
                return -1;
        } while (sender->posted != posted); /* what went at once has freed its slot */
        if (link_tick(&sender->link, trouble) < 0)
            return -1;
        stats_progress(&sender->stats, atomic_load(&sender->source.total));
    }
}

static void say_goodbye(struct sender *sender)
{
    struct trouble ignored = {0};
    link_say(&sender->link, RECORD_BYE, 0, &ignored);
    sender->transport->kind->finish(sender->transport, FINISH_MS);
}

static void part(struct sender *sender)
{
    struct trouble *trouble = &sender->trouble;
    if (!trouble->status || !sender->transport)
        return;
    child_signal(&sender->child, SIGTERM);
    if (sender->end_ms && !sender->done && !sender->link.told) {
        struct trouble unknown = {0};
        troubled(&unknown, EXIT_UNKNOWN,
                 "outcome unknown: all was sent, but not confirmed: %.200s",
                 trouble->text);
        *trouble = unknown;
    }
    link_abort(&sender->link, trouble);
}

/* Gives the source's thread a moment to see that nobody waits for it any more. One that
 * stays in read(2) is left alone, with all that it uses; this process ends anyway. */
static bool settle(struct sender *sender)
{
    struct source *source = &sender->source;
    if (!source->started)
        return true;
    ring_end(&sender->ring);
    for (int64_t end_ms = now_ms() + SETTLE_MS;
         !atomic_load(&source->over) && now_ms() < end_ms;) {
        struct pollfd polled = {sender->ring.wake_fd, POLLIN, 0};
        poll(&polled, 1, 10);
        ring_woken(&sender->ring);
    }
    return source_join(source);
}

static void sender_close(struct sender *sender)
{
    const struct source *source = &sender->source;
    struct waits waits = {0};
    bool settled = settle(sender);
    if (atomic_load(&source->over))
        waits = (struct waits){source->read_us, source->network_us, 0};
    if (sender->trouble.status && !heard_in_chain(&sender->trouble, sender->options))
        say("%s", sender->trouble.text);
    stats_close(&sender->stats, sender->transport, atomic_load(&source->total), &waits,
                &sender->trouble);
    if (!settled)
        sender->child.fd = -1;
    child_close(&sender->child);
    key_close(&sender->key);
    if (!settled)
        return;
    seals_close(&sender->seals);
    transport_close(sender->transport);
    ring_close(&sender->ring);
}

int send_stream(const struct options *options)
{
    static struct sender sender; /* its thread may outlive this function in trouble */
    sender.options = options;
    sender.input_fd = sender.signal_fd = -1;
    child_init(&sender.child);
    sender.source.size = -1;
    stats_init(&sender.stats, options);
    visible(sender.name, sizeof sender.name,
            options->command ? options->command[0]
            : options->file  ? options->file
                             : "stdin");
    if (key_open(&sender.key, options->key_file, options->key_fd, &sender.trouble) == 0 &&
        open_input(&sender) == 0) { /* which a signal may end: it may wait for ever */
        sender.signal_fd = signals_open();
        if (sender.signal_fd < 0)
            troubled(&sender.trouble, EXIT_FAULT, "signalfd: %s", strerror(errno));
        else
            sender.transport =
                dial(options, &sender.key, &sender.meeting, &sender.trouble);
    }
    if (sender.transport && begin(&sender) == 0 &&
        send_all(&sender) == 0)
        say_goodbye(&sender);
    part(&sender);
    sender_close(&sender);
    return sender.trouble.status;
}
