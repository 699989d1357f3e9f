/* rdsend: reads a stream and sends it to one receiver.
 *
 * The peer's thread (here) sends what the source's thread made ready, as far as the
 * receiver has given credits. The end record goes out only when the input ended well:
 * at the end of a file or of stdin, or when the producer has exited with 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dial.h"
#include "end.h"
#include "signals.h"
#include "source.h"

struct sender {
    struct end end;
    char name[200]; /* of the input, for messages */
    int input_fd;   /* of FILE; -1 without */
    struct source source;
    uint64_t credits, posted;
    int64_t end_ms; /* when the end went out; 0 = it has not */
    bool done;
};

static int open_input(struct sender *sender)
{
    const char *file = sender->end.options->file;
    struct stat state;
    if (sender->end.options->command)
        return 0;
    if (file) {
        do /* a FIFO's open waits for its writer; nobody waits for us yet */
            sender->input_fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        while (sender->input_fd < 0 && errno == EINTR);
        if (sender->input_fd < 0)
            return fault(&sender->end.trouble, "cannot open %s: %m", sender->name);
    }
    int fd = file ? sender->input_fd : STDIN_FILENO;
    bool closed = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY; /* see descriptors.h */
    errno = EBADF;
    if (closed || fstat(fd, &state) < 0)
        return fault(&sender->end.trouble, "cannot use stdin: %m");
    if (S_ISDIR(state.st_mode))
        return fault(&sender->end.trouble, "%s is a directory: rdcp -r copies trees",
                     sender->name);
    sender->source.size = S_ISREG(state.st_mode) ? state.st_size : -1;
    sender->source.whole = file && S_ISREG(state.st_mode);
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return 0;
}

static int begin(struct sender *sender)
{
    const struct options *options = sender->end.options;
    struct source *source = &sender->source;
    if (end_open(&sender->end, source->size) < 0)
        return -1;
    source->worker = &sender->end.worker;
    source->fd = options->command ? sender->end.child.fd
                 : options->file  ? sender->input_fd
                                  : STDIN_FILENO;
    source->name = sender->name;
    source->rate = (uint64_t)options->rate;
    return source_start(source, &sender->end.trouble);
}

static int take_done(struct sender *sender, const struct transport_event *event)
{
    struct ending ending;
    if (!sender->end_ms || event->record.number != sender->end.worker.count)
        return fault(&sender->end.trouble,
                     "the other end claims to be done before the end");
    ending_get(&ending, event->body);
    if (ending.total != atomic_load(&sender->end.worker.total))
        return fault(&sender->end.trouble,
                     "the other end wrote another number of bytes than were sent");
    sender->done = sender->end.child.whole = true;
    return 0;
}

static int take_event(struct sender *sender, const struct transport_event *event)
{
    struct end *end = &sender->end;
    if (event->kind == EVENT_SENT) {
        end->link.said++;
        ring_put(&end->ring, &end->ring.free, event->slot);
        return 0;
    }
    if (event->kind == EVENT_RECORD && event->record.type == RECORD_CREDIT) {
        if (event->record.number < sender->credits ||
            event->record.number - sender->posted > CREDITS_MOST)
            return fault(&end->trouble, "refused what %s sent: %llu credits after %llu",
                         end->transport->peer, (unsigned long long)event->record.number,
                         (unsigned long long)sender->credits);
        sender->credits = end->link.got = event->record.number;
        end->link.moved_ms = now_ms();
        return 0;
    }
    if (event->kind == EVENT_RECORD && event->record.type == RECORD_DONE)
        return take_done(sender, event);
    return fault(&end->trouble, "refused what %s sent: a record that is not a receiver's",
                 end->transport->peer);
}

static int post_data(struct sender *sender)
{
    struct end *end = &sender->end;
    struct slot *slot;
    while (sender->posted < sender->credits &&
           (slot = ring_take(&end->ring, &end->ring.full))) {
        if (end->transport->kind->post(end->transport, slot, &end->trouble) < 0)
            return -1;
        sender->posted++;
        end->link.moved_ms = now_ms();
    }
    return 0;
}

/* 0: not yet, or it is out; -1: trouble. */
static int post_end(struct sender *sender)
{
    struct end *end = &sender->end;
    struct worker *worker = &end->worker;
    struct ending ending = {atomic_load(&worker->total), sender->source.checksum};
    int said = link_say_ending(&end->link, RECORD_END, worker->count, &ending,
                               &end->trouble);
    if (said == 0) {
        end->link.said++;
        end->link.idle_ms = 0; /* no more data is to move */
        sender->end_ms = now_ms();
    }
    return said < 0 ? -1 : 0;
}

static int move(struct sender *sender)
{
    struct end *end = &sender->end;
    struct worker *worker = &end->worker;
    if (child_check(&end->child, &end->trouble) < 0 || post_data(sender) < 0)
        return -1;
    if (!atomic_load(&worker->over))
        return 0;
    if (worker->trouble.status) {
        end->trouble = worker->trouble;
        return -1;
    }
    bool produced = !end->child.pid || end->child.status == 0;
    bool sent = sender->credits && sender->posted == worker->count &&
                (end->transport->kind->ordered || end->link.said == sender->posted);
    if (sent && produced && !sender->end_ms)
        return post_end(sender);
    int64_t limit_ms = end->options->finish_ms;
    if (sender->end_ms && limit_ms && now_ms() - sender->end_ms > limit_ms)
        return fault(&end->trouble, "no confirmation for %g s (--finish-timeout)",
                     (double)limit_ms / 1000);
    return 0;
}

static int send_all(struct sender *sender)
{
    struct end *end = &sender->end;
    for (;;) {
        struct transport_event event;
        struct pollfd none = {-1, 0, 0};
        if (end_wait(end, &none) < 0)
            return -1;
        uint64_t posted;
        do {
            int got;
            while ((got = link_next(&end->link, &event, &end->trouble)) > 0)
                if (take_event(sender, &event) < 0)
                    return -1;
                else if (sender->done)
                    return 0;
            posted = sender->posted;
            if (got < 0 || move(sender) < 0)
                return -1;
        } while (sender->posted != posted); /* what went at once has freed its slot */
        if (link_tick(&end->link, &end->trouble) < 0)
            return -1;
        stats_progress(&end->stats, atomic_load(&end->worker.total));
    }
}

static void say_goodbye(struct sender *sender)
{
    struct trouble ignored = {0};
    link_say(&sender->end.link, RECORD_BYE, 0, &ignored);
    transport_finish(sender->end.transport, FINISH_MS);
}

static void part(struct sender *sender)
{
    struct trouble *trouble = &sender->end.trouble;
    if (!trouble->status || !sender->end.transport)
        return;
    child_signal(&sender->end.child, SIGTERM);
    if (sender->end_ms && !sender->done && !sender->end.link.told) {
        struct trouble unknown = {0};
        troubled(&unknown, EXIT_UNKNOWN,
                 "outcome unknown: all was sent, but not confirmed: %.200s",
                 trouble->text);
        *trouble = unknown;
    }
    link_abort(&sender->end.link, trouble);
}

int send_stream(const struct options *options)
{
    static struct sender sender; /* its thread may outlive this function in trouble */
    struct end *end = &sender.end;
    sender.input_fd = -1;
    sender.source.size = -1;
    visible(sender.name, sizeof sender.name,
            options->command ? options->command[0]
            : options->file  ? options->file
                             : "stdin");
    if (end_init(end, options) == 0 &&
        open_input(&sender) == 0 && /* which a signal may end: it may wait for ever */
        signals_open(&end->trouble) == 0)
        end->transport = dial(options, &end->key, &end->meeting, &end->trouble);
    if (end->transport && begin(&sender) == 0 && send_all(&sender) == 0)
        say_goodbye(&sender);
    part(&sender);
    end_settle(end);
    return end_close(end);
}
