/* rdsend: reads a stream and sends it to one receiver.
 *
 * Only the worker thread touches the input. It fills the ring's slots and makes a data record of
 * each. The peer's thread sends these records, within the credits of the receiver. The end record
 * is sent only if the input ended well: at the end of a file or of stdin, or after the producer
 * exited with 0 (as rsh(1): with any status). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bytes.h"
#include "descriptors.h"
#include "connect.h"
#include "end.h"
#include "signals.h"

/* Bytes of a slow producer are sent if no more bytes arrive for this long. */
enum { PAUSE_MS = 1, FILL_MOST_MS = 100, PIPE_BYTES = 1 << 20, CREDIT_US = 100000 };

struct sender {
    struct end end; /* first: both structs have the same address */
    char name[200]; /* name of the input, for messages */
    int fd;         /* the input; -1 before it is open */
    bool ended;     /* the end was read: a terminal reports it once */
    bool whole;     /* a named file: its size must not change during the reading */
    /* state at the opening of a regular file; otherwise st_size is -1 */
    struct stat before;
    double due_us;      /* earliest time to send all bytes read so far */
    uint64_t checksum;  /* final when the worker is over */

    uint64_t credits, posted;
    int64_t end_ms; /* time the end record was sent; 0 = not sent */
};

/* The worker */

static bool readable(const struct sender *sender, int wait_ms)
{
    struct pollfd polled = {sender->fd, POLLIN, 0};
    return poll(&polled, 1, wait_ms) > 0;
}

/* Return the bytes read; 0 at the end; -1 with an error. */
static ssize_t read_some(struct sender *sender, uint8_t *into, size_t room)
{
    for (;;) {
        ssize_t got = read(sender->fd, into, room);
        if (got >= 0)
            return got;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            readable(sender, -1);
        else if (errno != EINTR)
            return fault(&sender->end.worker.error, "cannot read %s: %m", sender->name);
    }
}

/* Fill a slot with the available bytes. Return 0 at the end, -1 with an error. */
static ssize_t fill(struct sender *sender, uint8_t *into, size_t room)
{
    size_t have = 0;
    int64_t since_us = now_us(), first_us = 0;
    while (!sender->ended) {
        ssize_t got = read_some(sender, into + have, room - have);
        if (got < 0)
            return -1;
        sender->ended = !got;
        have += (size_t)got;
        if (sender->ended || have == room)
            break;
        first_us = first_us ? first_us : now_us();
        if (now_us() - first_us > FILL_MOST_MS * 1000 || !readable(sender, PAUSE_MS))
            break;
    }
    sender->end.worker.stream_us += now_us() - since_us;
    return (ssize_t)have;
}

static int make_record(struct end *end, struct slot *slot, size_t length)
{
    struct seal *seal = end->link.seals ? &end->seals.data : NULL;
    uint64_t number = end->worker.count++;
    slot->length = (uint32_t)length + (seal ? SEAL_BYTES : 0);
    record_put(slot->bytes, &(struct record){RECORD_DATA, slot->length, number});
    if (seal && seal_close_record(seal, slot->bytes, number) < 0)
        return fault(&end->worker.error, "OpenSSL cannot encrypt");
    return 0;
}

/* Sleep until the rate allows more bytes after these. Unused rate of an earlier pause is lost,
 * except for a tenth of a second. */
static void keep_rate(struct sender *sender, size_t length)
{
    int64_t now = now_us();
    if (sender->due_us < (double)(now - CREDIT_US))
        sender->due_us = (double)(now - CREDIT_US);
    sender->due_us += (double)length * 1e6 / (double)sender->end.options->rate;
    int64_t left_us = (int64_t)sender->due_us - now;
    struct timespec nap = {left_us / 1000000, left_us % 1000000 * 1000};
    if (left_us > 0)
        nanosleep(&nap, NULL);
}

/* Return the size of a record. At a low rate a record holds a tenth of a second of data. */
static size_t room_of(const struct sender *sender)
{
    uint64_t rate = (uint64_t)sender->end.options->rate, room = sender->end.ring.chunk;
    if (rate && rate / 10 < room)
        room = MAX(rate / 10, 1);
    return (size_t)room;
}

/* Return true if the file has another size than at the start. Files in /proc report 0 bytes and
 * those in /sys 4096, regardless of their content. */
static bool another_size(const struct stat *before, uint64_t total, const struct stat *now)
{
    uint64_t size = (uint64_t)before->st_size;
    bool written = now->st_mtim.tv_sec != before->st_mtim.tv_sec ||
                   now->st_mtim.tv_nsec != before->st_mtim.tv_nsec;
    if (now->st_size != before->st_size)
        return true;
    return size && total != size && (total > size || written);
}

static int check(struct sender *sender)
{
    struct stat now;
    uint64_t total = atomic_load(&sender->end.worker.total);
    if (!sender->whole || fstat(sender->fd, &now) < 0 ||
        !another_size(&sender->before, total, &now))
        return 0;
    return fault(&sender->end.worker.error,
                 "%s changed while it was read: it had %lld bytes, %llu were read, it has "
                 "%lld now", sender->name, (long long)sender->before.st_size,
                 (unsigned long long)total, (long long)now.st_size);
}

static int pass_on(struct sender *sender, XXH3_state_t *hash)
{
    struct worker *worker = &sender->end.worker;
    struct ring *ring = &sender->end.ring;
    struct slot *slot;
    sender->due_us = (double)now_us();
    while ((slot = ring_wait(ring, &ring->free, &worker->network_us))) {
        uint8_t *payload = slot->bytes + RECORD_BYTES;
        ssize_t length = fill(sender, payload, room_of(sender));
        if (length <= 0)
            return length < 0 ? -1 : check(sender);
        if (sender->end.checksummed)
            XXH3_64bits_update(hash, payload, (size_t)length);
        if (make_record(&sender->end, slot, (size_t)length) < 0)
            return -1;
        atomic_fetch_add(&worker->total, (uint64_t)length);
        ring_put(ring, &ring->full, slot);
        ring_wake(ring);
        if (sender->end.options->rate)
            keep_rate(sender, (size_t)length);
    }
    return fault(&worker->error, "stopped");
}

static void work(struct end *end, XXH3_state_t *hash)
{
    struct sender *sender = (struct sender *)end;
    pass_on(sender, hash);
    sender->checksum = end->checksummed ? XXH3_64bits_digest(hash) : 0;
    ring_end(&end->ring);
}

/* The peer's thread */

static int open_input(struct sender *sender)
{
    const char *file = sender->end.options->file;
    struct error *error = &sender->end.error;
    if (sender->end.options->command)
        return 0;
    sender->fd = STDIN_FILENO;
    if (file) {
        do /* opening a FIFO waits for its writer; no peer is waiting yet */
            sender->fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        while (sender->fd < 0 && errno == EINTR);
        if (sender->fd < 0)
            return fault(error, "cannot open %s: %m", sender->name);
    }
    bool closed = (fcntl(sender->fd, F_GETFL) & O_ACCMODE) == O_WRONLY;
    errno = EBADF; /* see descriptors.h */
    if (closed || fstat(sender->fd, &sender->before) < 0)
        return fault(error, "cannot use stdin: %m");
    if (S_ISDIR(sender->before.st_mode))
        return fault(error, "%s is a directory: rdcp -r copies trees", sender->name);
    sender->whole = file && S_ISREG(sender->before.st_mode);
    if (!S_ISREG(sender->before.st_mode))
        sender->before.st_size = -1;
    posix_fadvise(sender->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return 0;
}

/* Read the destination from the agent. The command starts before, if it is not yet known. */
static int read_address(struct end *end, struct options *told)
{
    static char where[1 << 16]; /* PORT ADDRESS,... */
    struct pollfd polled = {(int)told->address_fd, POLLIN, 0};
    fcntl(polled.fd, F_SETFD, FD_CLOEXEC);
    if ((poll(&polled, 1, 0) == 0 && told->command && end_start(end) < 0) ||
        signals_wait(&polled, 1, INT64_MAX, &end->error) < 0)
        return -1;
    told->socket_fd = fd_take(polled.fd, where, sizeof where);
    close(polled.fd);
    told->host = where;
    told->port = strsep((char **)&told->host, " ");
    return told->host ? 0 : fault(&end->error, "no address to send to");
}

static int begin(struct sender *sender)
{
    struct end *end = &sender->end;
    if (end_open(end, sender->before.st_size) < 0)
        return -1;
    if (end->options->command)
        sender->fd = end->child.fd;
    fcntl(sender->fd, F_SETPIPE_SZ, PIPE_BYTES); /* fails for anything but a pipe */
    return worker_start(end, work);
}

static int take_done(struct sender *sender, const struct transport_event *event)
{
    struct ending ending;
    if (!sender->end_ms || event->record.number != sender->end.worker.count)
        return fault(&sender->end.error, "the other end claims to be done before the end");
    ending_get(&ending, event->body);
    if (ending.total != atomic_load(&sender->end.worker.total))
        return fault(&sender->end.error,
                     "the other end wrote another number of bytes than were sent");
    sender->end.done = sender->end.child.whole = true;
    return 0;
}

static int take_event(struct end *end, const struct transport_event *event)
{
    struct sender *sender = (struct sender *)end;
    if (event->kind == EVENT_SENT) {
        end->link.said++;
        ring_put(&end->ring, &end->ring.free, event->slot);
        return 0;
    }
    if (event->kind == EVENT_RECORD && event->record.type == RECORD_CREDIT) {
        if (event->record.number < sender->credits ||
            event->record.number - sender->posted > CREDITS_MOST)
            return fault(&end->error, "refused what %s sent: %llu credits after %llu",
                         end->transport->peer, (unsigned long long)event->record.number,
                         (unsigned long long)sender->credits);
        sender->credits = end->link.got = event->record.number;
        end->link.moved_ms = now_ms();
        return 0;
    }
    if (event->kind == EVENT_RECORD && event->record.type == RECORD_DONE)
        return take_done(sender, event);
    return transport_refuse(end->transport, "a record that is not a receiver's", &end->error);
}

static int post_data(struct sender *sender)
{
    struct end *end = &sender->end;
    struct slot *slot;
    while (sender->posted < sender->credits && (slot = ring_take(&end->ring, &end->ring.full))) {
        if (end->transport->kind->post(end->transport, slot, &end->error) < 0)
            return -1;
        sender->posted++;
        end->link.moved_ms = now_ms();
    }
    return 0;
}

/* Queue the end record. Return 0 if it was queued or must wait, -1 with an error. */
static int post_end(struct sender *sender)
{
    struct end *end = &sender->end;
    struct worker *worker = &end->worker;
    struct ending ending = {atomic_load(&worker->total), sender->checksum};
    int said = link_say(&end->link, RECORD_END, worker->count, &ending, &end->error);
    if (said == 0) {
        end->link.said++;
        end->link.idle_ms = 0; /* no more data to send */
        sender->end_ms = now_ms();
    }
    return said < 0 ? -1 : 0;
}

static int move(struct end *end)
{
    struct sender *sender = (struct sender *)end;
    struct worker *worker = &end->worker;
    uint64_t posted = sender->posted;
    bool rsh = end->options->rsh;
    struct error ignored = {0};
    if ((child_check(&end->child, rsh ? &ignored : &end->error) < 0 && !rsh) ||
        post_data(sender) < 0)
        return -1;
    if (!atomic_load(&worker->over))
        return sender->posted != posted; /* a record sent at once has freed its slot */
    if (worker->error.status) {
        end->error = worker->error;
        return -1;
    }
    bool produced = !end->child.pid || end->child.status == 0 || (rsh && end->child.status > 0);
    bool sent = sender->credits && sender->posted == worker->count &&
                (end->transport->kind->ordered || end->link.said == sender->posted);
    if (sent && produced && !sender->end_ms)
        return post_end(sender);
    int64_t limit_ms = end->options->finish_ms;
    if (sender->end_ms && limit_ms && now_ms() - sender->end_ms > limit_ms)
        return fault(&end->error, "no confirmation from %s for %g s: is the program that "
                     "reads there stuck? (--finish-timeout)", end->transport->peer,
                     (double)limit_ms / 1000);
    return sender->posted != posted;
}

static void say_goodbye(struct sender *sender)
{
    struct error ignored = {0};
    link_say(&sender->end.link, RECORD_BYE, 0, NULL, &ignored);
    transport_finish(sender->end.transport, FINISH_MS);
}

static void part(struct sender *sender)
{
    struct error *error = &sender->end.error;
    if (!error->status || !sender->end.transport)
        return;
    child_signal(&sender->end.child, SIGTERM);
    if (sender->end_ms && !sender->end.done && !sender->end.link.told) {
        struct error unknown = {0};
        fault_status(&unknown, EXIT_UNKNOWN,
                     "outcome unknown: all was sent, but not confirmed: %.200s", error->text);
        *error = unknown;
    }
    link_abort(&sender->end.link, error);
}

static int send_stream(const struct options *options)
{
    /* static: the thread may outlive this function after an error */
    static struct sender sender;
    static struct options told;
    struct end *end = &sender.end;
    told = *options;
    sender.fd = -1;
    sender.before.st_size = -1;
    visible(sender.name, sizeof sender.name,
            options->command ? options->command[0]
            : options->file  ? options->file
                             : "stdin");
    if (end_init(end, &told) == 0 &&
        open_input(&sender) == 0 && /* may block for ever; a signal may end it */
        signals_open(&end->error) == 0 && (told.address_fd < 0 || read_address(end, &told) == 0))
        end->transport = connect_peer(&told, &end->key, &end->handshake, &end->error);
    if (end->transport && begin(&sender) == 0 && end_run(end, take_event, move) == 0)
        say_goodbye(&sender);
    part(&sender);
    end_settle(end);
    return end_close(end);
}

int main(int argc, char **argv)
{
    standard_open();
    return options_main(true, argc, argv, send_stream);
}
