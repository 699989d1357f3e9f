/* One end of a stream: see end.h. */
#include "end.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"

enum { LOOK_MS = 10 };

int end_init(struct end *end, const struct options *options)
{
    end->options = options;
    end->output_fd = -1;
    child_init(&end->child);
    end->child.status_fd = (int)options->status_fd;
    end->begun_us = now_us();
    return key_open(&end->key, options->key_file, (int)options->key_fd, &end->error);
}

/* Erase the secrets once the seals are made of them. */
static void forget_secrets(struct end *end)
{
    explicit_bzero(end->handshake.secret, sizeof end->handshake.secret);
    key_close(&end->key);
}

/* Print "sending to PEER over tcp, chunks of ...". */
static void say_begin(const struct end *end)
{
    const struct transport *transport = end->transport;
    const char *seal = seal_name(&end->handshake);
    if (end->options->verbose)
        say("%s %s over %s%s%s, chunks of %u bytes%s%s%s",
            end->options->sends ? "sending to" : "receiving from", transport->peer,
            transport->kind->name, transport->device[0] ? " on " : "", transport->device,
            (unsigned)end->ring.chunk, *seal ? ", " : "", seal, end->checksummed ? ", XXH3" : "");
}

static bool shows_progress(const struct end *end)
{
    return end->begun && end->options->verbose && end->options->progress && isatty(STDERR_FILENO);
}

static void show_progress(struct end *end)
{
    int64_t now = now_us();
    uint64_t bytes = atomic_load(&end->worker.total);
    if (now - end->shown_us < STATS_EACH_MS * INT64_C(1000) || !shows_progress(end))
        return;
    end->shown_us = now;
    stats_show(bytes, bytes, end->size, now - end->begun_us);
}

/* Print the size and throughput: as text, or as JSON for programs. */
static void say_result(const struct end *end)
{
    const struct worker *worker = &end->worker;
    const struct transport *transport = end->transport;
    const char *name = transport ? transport->kind->name : "none";
    const char *device = transport ? transport->device : "";
    bool over = atomic_load(&worker->over);
    uint64_t bytes = atomic_load(&worker->total);
    double seconds = (double)(now_us() - end->begun_us) / 1e6;
    double rate = seconds > 0 ? (double)bytes / seconds : 0;
    double stream_s = over ? (double)worker->stream_us / 1e6 : 0;
    double network_s = over ? (double)worker->network_us / 1e6 : 0;
    double read_s = end->options->sends ? stream_s : 0, write_s = stream_s - read_s;
    char speed[32], done[32], why[sizeof end->error.text];
    if (shows_progress(end))
        fputs(STATS_CLEAR, stderr);
    if (end->begun && end->options->verbose)
        say("Bandwidth %s/s: %s in %.3f s over %s%s%s; waited %.3f s to read, %.3f s "
            "for the network, %.3f s to write", stats_amount(rate, speed, sizeof speed),
            stats_amount((double)bytes, done, sizeof done), seconds, name,
            *device ? " on " : "", device, read_s, network_s, write_s);
    if (!end->options->json)
        return;
    shown(why, sizeof why, end->error.text, (uint32_t)strlen(end->error.text));
    for (char *at = why; (at = strpbrk(at, "\"\\"));)
        *at = '\'';
    fprintf(stderr, "{\"bytes\": %llu, \"seconds\": %.6f, \"bytes_per_s\": %.0f, "
            "\"transport\": \"%s\", \"device\": \"%s\", \"peer\": \"%s\", "
            "\"read_wait_s\": %.6f, \"network_wait_s\": %.6f, \"write_wait_s\": %.6f, "
            "\"status\": %d, \"error\": \"%s\"}\n",
            (unsigned long long)bytes, seconds, rate, name, device,
            transport ? transport->peer : "", read_s, network_s, write_s, end->error.status, why);
}

int end_start(struct end *end)
{
    enum child_side side = end->options->sends ? CHILD_PRODUCER : CHILD_CONSUMER;
    return child_open(&end->child, end->options->command, side, &end->error);
}

int end_open(struct end *end, int64_t size)
{
    const struct options *options = end->options;
    struct error *error = &end->error;
    struct transport *transport = end->transport;
    bool sealed = handshake_encrypts(&end->handshake);
    link_open(&end->link, transport, options);
    if (sealed && seals_open(&end->seals, &end->handshake, error) < 0)
        return -1;
    end->link.seals = sealed ? &end->seals : NULL;
    forget_secrets(end);
    if (ring_open(&end->ring, end->handshake.mine.credits, transport->spares,
                  handshake_chunk(&end->handshake)) < 0)
        return fault(error, "no memory for buffers: %m");
    if (transport->kind->ring && transport->kind->ring(transport, &end->ring, error) < 0)
        return -1;
    if (options->command && !end->child.pid && end_start(end) < 0)
        return -1;
    end->checksummed = handshake_checksum(&end->handshake);
    say_begin(end);
    end->size = size;
    end->begun_us = end->shown_us = now_us();
    end->begun = true;
    return 0;
}

static void *worker_run(void *argument)
{
    struct end *end = argument;
    XXH3_state_t *hash = allocated(XXH3_createState());
    XXH3_64bits_reset(hash);
    end->worker.work(end, hash);
    XXH3_freeState(hash);
    atomic_store(&end->worker.over, true);
    ring_wake(&end->ring);
    return NULL;
}

int worker_start(struct end *end, void (*work)(struct end *, XXH3_state_t *))
{
    end->worker.work = work;
    int code = pthread_create(&end->worker.thread, NULL, worker_run, end);
    if (code)
        return fault(&end->error, "no thread: %s", strerror(code));
    end->worker.started = true;
    return 0;
}

void worker_await(struct end *end, int limit_ms)
{
    for (int64_t end_ms = now_ms() + limit_ms;
         !atomic_load(&end->worker.over) && now_ms() < end_ms;) {
        struct pollfd polled = {end->ring.wake_fd, POLLIN, 0};
        poll(&polled, 1, LOOK_MS);
        ring_woken(&end->ring);
    }
}

bool worker_join(struct end *end)
{
    struct worker *worker = &end->worker;
    if (worker->started && !atomic_load(&worker->over))
        return false;
    if (worker->started)
        pthread_join(worker->thread, NULL);
    worker->started = false;
    return true;
}

/* Wait for the peer, the worker, the command, the output's reader or a signal. */
static int wait_for_any(struct end *end)
{
    struct pollfd polled[] = {
        {end->ring.wake_fd, POLLIN, 0},
        {end->child.pid_fd, POLLIN, 0},
        {end->output_fd, 0, 0},
    };
    if (link_wait(&end->link, polled, 3, &end->error) < 0)
        return -1;
    if (polled[0].revents)
        ring_woken(&end->ring);
    end->output_events = polled[2].revents;
    return 0;
}

/* Process all available events, until the stream is done. */
static int take_all(struct end *end, int (*take)(struct end *, const struct transport_event *))
{
    struct transport_event event;
    int got = 0;
    while (!end->done && (got = link_next(&end->link, &event, &end->error)) > 0)
        if (take(end, &event) < 0)
            return -1;
    return got;
}

int end_run(struct end *end, int (*take)(struct end *, const struct transport_event *),
            int (*move)(struct end *))
{
    for (;;) {
        int again;
        do {
            if (take_all(end, take) < 0)
                return -1;
            again = end->done ? 0 : move(end);
        } while (again > 0);
        if (again < 0 || end->done)
            return again;
        if (link_tick(&end->link, &end->error) < 0)
            return -1;
        show_progress(end);
        if (wait_for_any(end) < 0)
            return -1;
    }
}

void end_settle(struct end *end)
{
    if (!end->worker.started)
        return;
    ring_end(&end->ring);
    worker_await(end, end->options->rsh ? 0 : SETTLE_MS); /* stdin may stay silent */
}

int end_close(struct end *end)
{
    struct error *error = &end->error;
    bool settled = worker_join(end);
    if (error->status && !heard_in_chain(error, end->options))
        say("%s", error->text);
    say_result(end);
    if (!settled && end->options->sends)
        end->child.fd = -1;
    child_close(&end->child);
    forget_secrets(end);
    if (!settled) {
        pthread_detach(end->worker.thread);
        return error->status;
    }
    seals_close(&end->seals);
    transport_close(end->transport);
    ring_close(&end->ring);
    return error->status;
}
