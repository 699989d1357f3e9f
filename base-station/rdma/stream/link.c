/* The connection to a proven peer: see link.h. */
#include "link.h"

#include <errno.h>
#include <string.h>

#include "meeting.h"
#include "signals.h"

enum { BEAT_MS = 1000 };

void link_open(struct link *link, struct transport *transport,
               const struct options *options, int signal_fd)
{
    int64_t now = now_ms();
    *link = (struct link){
        .transport = transport,
        .timeout_ms = options->timeout_ms,
        .idle_ms = options->idle_ms,
        .heard_ms = now,
        .beaten_ms = now,
        .moved_ms = now,
        .signal_fd = signal_fd,
    };
}

int link_wait(struct link *link, struct pollfd *extra, int count,
              struct trouble *trouble)
{
    struct pollfd polled[LINK_FDS + 4] = {{link->signal_fd, POLLIN, 0}};
    int own = 1 + link->transport->kind->fds(link->transport, polled + 1);
    memcpy(polled + own, extra, (size_t)count * sizeof *extra);
    int64_t until_ms = link->beaten_ms + BEAT_MS;
    if (link->timeout_ms && link->heard_ms + link->timeout_ms < until_ms)
        until_ms = link->heard_ms + link->timeout_ms + 1;
    int64_t wait_ms = until_ms - now_ms();
    int ready = poll(polled, (nfds_t)(own + count), wait_ms > 0 ? (int)wait_ms : 0);
    if (ready < 0) {
        if (errno != EINTR)
            return troubled(trouble, EXIT_FAULT, "poll: %s", strerror(errno));
        for (int i = 0; i < count; i++)
            extra[i].revents = 0;
        return 0;
    }
    memcpy(extra, polled + own, (size_t)count * sizeof *extra);
    link->transport->quiet = true;
    for (int i = 1; i < own; i++)
        link->transport->quiet &= !polled[i].revents;
    return polled[0].revents ? signals_take(trouble) : 0;
}

static int take_abort(struct link *link, const struct transport_event *event,
                      struct trouble *trouble)
{
    char text[ABORT_BYTES + 1];
    shown(text, sizeof text, event->body, event->record.length);
    link->told = true;
    trouble->heard |= !trouble->status;
    return troubled(trouble, EXIT_FAULT, "the other end stopped: %s", text);
}

int link_next(struct link *link, struct transport_event *event, struct trouble *trouble)
{
    struct transport *transport = link->transport;
    int got;
    while ((got = transport->kind->poll(transport, event, trouble)) > 0) {
        int64_t now = now_ms();
        if (event->kind != EVENT_RECORD) {
            link->moved_ms = now;
            link->heard_ms = event->kind == EVENT_DATA ? now : link->heard_ms;
            return 1;
        }
        link->heard_ms = now;
        if (event->record.type == RECORD_ABORT)
            return take_abort(link, event, trouble);
        if (event->record.type != RECORD_HEARTBEAT)
            return 1;
    }
    /* Part of a record is no silence either: on a slow link a whole one takes long. */
    if (transport->heard)
        link->heard_ms = now_ms();
    transport->heard = false;
    return got;
}

int link_say(struct link *link, int type, uint64_t number, struct trouble *trouble)
{
    uint8_t record[RECORD_BYTES];
    record_put(record, &(struct record){(uint8_t)type, 0, number});
    return link->transport->kind->control(link->transport, record, trouble);
}

int link_say_ending(struct link *link, int type, uint64_t number,
                    const struct ending *ending, struct seal *seal,
                    struct trouble *trouble)
{
    uint8_t record[CONTROL_BYTES] = {0};
    uint32_t length = END_BYTES + (seal ? SEAL_BYTES : 0);
    record_put(record, &(struct record){(uint8_t)type, length, number});
    ending_put(record + RECORD_BYTES, ending);
    if (seal && seal_close_record(seal, record) < 0)
        return troubled(trouble, EXIT_FAULT, "OpenSSL cannot encrypt");
    return link->transport->kind->control(link->transport, record, trouble);
}

int link_tick(struct link *link, struct trouble *trouble)
{
    int64_t now = now_ms();
    if (now - link->beaten_ms >= BEAT_MS) {
        link->beaten_ms = now;
        if (link_say(link, RECORD_HEARTBEAT, 0, trouble) < 0)
            return -1;
    }
    link->silent = link->timeout_ms && now - link->heard_ms > link->timeout_ms;
    if (link->silent)
        return troubled(trouble, EXIT_FAULT,
                        "nothing heard from %s for %g s: is the network cut? (--timeout)",
                        link->transport->peer, (double)link->timeout_ms / 1000);
    if (link->idle_ms && now - link->moved_ms > link->idle_ms)
        return troubled(trouble, EXIT_FAULT, "no data for %g s (--idle-timeout)",
                        (double)link->idle_ms / 1000);
    return 0;
}

void link_abort(struct link *link, const struct trouble *why)
{
    struct transport *transport = link->transport;
    if (!transport || transport->peer_left)
        return;
    if (!link->told) {
        struct trouble ignored = {0};
        uint8_t record[CONTROL_BYTES];
        abort_put(record, why->status, why->text);
        transport->kind->control(transport, record, &ignored);
    }
    transport->kind->finish(transport, link->silent || link->told ? 0 : FINISH_MS);
}
