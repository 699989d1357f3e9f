/* One end of a stream: see end.h. */
#include "end.h"

#include <errno.h>
#include <string.h>


int end_init(struct end *end, const struct options *options)
{
    end->options = options;
    child_init(&end->child);
    stats_init(&end->stats, options);
    return key_open(&end->key, options->key_file, (int)options->key_fd, &end->trouble);
}

int end_open(struct end *end, int64_t size)
{
    const struct options *options = end->options;
    struct trouble *trouble = &end->trouble;
    struct transport *transport = end->transport;
    bool sealed = meeting_protection(&end->meeting) != PROTECT_NOT;
    link_open(&end->link, transport, options);
    if (sealed && seals_open(&end->seals, &end->meeting, trouble) < 0)
        return -1;
    end->link.seals = sealed ? &end->seals : NULL;
    if (ring_open(&end->ring, end->meeting.mine.credits, transport->spares,
                  meeting_chunk(&end->meeting)) < 0)
        return fault(trouble, "no memory for buffers: %m");
    if (transport->kind->ring && transport->kind->ring(transport, &end->ring, trouble) < 0)
        return -1;
    enum child_side side = options->sends ? CHILD_PRODUCER : CHILD_CONSUMER;
    if (options->command && child_open(&end->child, options->command, side, trouble) < 0)
        return -1;
    end->worker.ring = &end->ring;
    end->worker.seal = sealed ? &end->seals.data : NULL;
    end->worker.checksummed = meeting_checksum(&end->meeting);
    stats_open(&end->stats, size, transport, &end->meeting);
    return 0;
}

int end_wait(struct end *end, struct pollfd *extra)
{
    struct pollfd polled[] = {
        {end->ring.wake_fd, POLLIN, 0},
        {end->child.pid_fd, POLLIN, 0},
        *extra,
    };
    if (link_wait(&end->link, polled, 3, &end->trouble) < 0)
        return -1;
    if (polled[0].revents)
        ring_woken(&end->ring);
    *extra = polled[2];
    return 0;
}

void end_settle(struct end *end)
{
    if (!end->worker.started)
        return;
    ring_end(&end->ring);
    worker_await(&end->worker, SETTLE_MS);
}

int end_close(struct end *end)
{
    struct trouble *trouble = &end->trouble;
    bool settled = worker_join(&end->worker);
    if (trouble->status && !heard_in_chain(trouble, end->options))
        say("%s", trouble->text);
    stats_close(&end->stats, end->transport, &end->worker, trouble);
    if (!settled && end->options->sends)
        end->child.fd = -1;
    child_close(&end->child);
    key_close(&end->key);
    if (!settled) {
        pthread_detach(end->worker.thread);
        return trouble->status;
    }
    seals_close(&end->seals);
    transport_close(end->transport);
    ring_close(&end->ring);
    return trouble->status;
}
