/* Connection to an authenticated peer: see link.h. */
#include "link.h"

#include <string.h>

#include "signals.h"

enum { BEAT_MS = 1000 };

void link_open(struct link *link, struct transport *transport, const struct options *options)
{
    int64_t now = now_ms();
    *link = (struct link){
        .transport = transport,
        .timeout_ms = options->timeout_ms,
        .idle_ms = options->idle_ms,
        .heard_ms = now,
        .beaten_ms = now,
        .moved_ms = now,
        .part = {now, transport->heard_bytes},
        .heard_bytes = transport->heard_bytes,
        .sends = options->sends,
    };
}

int link_wait(struct link *link, struct pollfd *extra, int count, struct error *error)
{
    struct transport *transport = link->transport;
    struct pollfd polled[TRANSPORT_FDS + 4];
    int own = transport->kind->fds(transport, polled);
    memcpy(polled + own, extra, (size_t)count * sizeof *extra);
    int64_t until_ms = link->beaten_ms + BEAT_MS;
    if (link->timeout_ms && link->heard_ms + link->timeout_ms < until_ms)
        until_ms = link->heard_ms + link->timeout_ms + 1;
    if (signals_wait(polled, own + count, until_ms, error) < 0)
        return -1;
    memcpy(extra, polled + own, (size_t)count * sizeof *extra);
    transport->quiet = true;
    for (int i = 0; i < own; i++)
        transport->quiet &= !polled[i].revents;
    return 0;
}

static int take_abort(struct link *link, const struct transport_event *event, struct error *error)
{
    char text[ABORT_BYTES + 1];
    shown(text, sizeof text, event->body, event->record.length);
    link->told = true;
    error->heard |= !error->status;
    return fault(error, "the other end stopped: %s", text);
}

/* Verify the tag of a record and remove it. */
static int unseal(struct link *link, struct transport_event *event, struct error *error)
{
    struct seals *seals = link->seals;
    struct record *record = &event->record;
    if (seals) {
        uint8_t *whole = event->body - RECORD_BYTES;
        if (seal_open_record(&seals->hear, whole, seals->hear.count++) < 0)
            return fault(error, "a message of %s was changed on its way", link->transport->peer);
        record->length -= SEAL_BYTES;
    }
    return record_fits(record) ? 0 : transport_refuse(link->transport, RECORD_LENGTH_WRONG, error);
}

static int take_heartbeat(const struct link *link, const struct record *record, struct error *error)
{
    if (record->number <= link->got)
        return 0;
    return fault(error, "some of what %s sent was lost on the way: it counts %llu, here are %llu",
                 link->transport->peer, (unsigned long long)record->number,
                 (unsigned long long)link->got);
}

/* Note that the last record is complete; the next one begins. */
static void note_whole(struct link *link, int64_t now)
{
    link->part.since_ms = now;
    link->part.bytes = link->transport->heard_bytes;
}

int link_next(struct link *link, struct transport_event *event, struct error *error)
{
    struct transport *transport = link->transport;
    int got;
    while ((got = transport->kind->poll(transport, event, error)) > 0) {
        int64_t now = now_ms();
        if (event->kind == EVENT_SENT) {
            link->moved_ms = now;
            return 1;
        }
        link->heard_ms = now;
        note_whole(link, now);
        if (event->kind == EVENT_DATA) {
            link->moved_ms = now;
            return 1;
        }
        if (unseal(link, event, error) < 0)
            return -1;
        if (event->record.type == RECORD_ABORT)
            return take_abort(link, event, error);
        if (event->record.type != RECORD_HEARTBEAT)
            return 1;
        if (take_heartbeat(link, &event->record, error) < 0)
            return -1;
    }
    /* Partial records count as activity, too: on a slow link a whole record takes long. */
    if (transport->heard_bytes != link->heard_bytes)
        link->heard_ms = now_ms();
    link->heard_bytes = transport->heard_bytes;
    /* A hop that closes without a word was ended by its agent, before it could say why. */
    error->heard |= got < 0 && transport->peer_left && !transport->peer_reset;
    return got;
}

static int say_record(struct link *link, const struct record *record, const void *body,
                      struct error *error)
{
    uint8_t whole[CONTROL_BYTES] = {0};
    struct seals *seals = link->seals;
    struct record sealed = *record;
    sealed.length += seals ? SEAL_BYTES : 0;
    record_put(whole, &sealed);
    memcpy(whole + RECORD_BYTES, body, record->length);
    if (seals && seal_close_record(&seals->say, whole, seals->say.count) < 0)
        return fault(error, "OpenSSL cannot encrypt");
    int said = transport_say(link->transport, whole, error);
    if (said == 0 && seals) /* a record that is not sent now uses no number */
        seals->say.count++;
    return said;
}

int link_say(struct link *link, int type, uint64_t number, const struct ending *ending,
             struct error *error)
{
    uint8_t body[END_BYTES];
    struct record record = {(uint8_t)type, ending ? END_BYTES : 0, number};
    if (ending)
        ending_put(body, ending);
    return say_record(link, &record, body, error);
}

/* Return true if a partial record arrives more slowly than any network would deliver it. */
static bool stuck(struct link *link, int64_t now)
{
    uint64_t bytes = link->transport->heard_bytes;
    if (!link->transport->in_part)
        note_whole(link, now);
    /* A silent peer is reported as silent (link_tick), not as stuck. */
    if (!link->timeout_ms || now - link->part.since_ms <= link->timeout_ms + 2 * BEAT_MS)
        return false;
    if ((bytes - link->part.bytes) * 1000 < (uint64_t)link->timeout_ms * RATE_LEAST)
        return true;
    note_whole(link, now);
    return false;
}

int link_tick(struct link *link, struct error *error)
{
    int64_t now = now_ms();
    if (now - link->beaten_ms >= BEAT_MS) {
        link->beaten_ms = now;
        if ((!link->sends || link->got) &&
            link_say(link, RECORD_HEARTBEAT, link->said, NULL, error) < 0)
            return -1;
    }
    link->silent = link->timeout_ms && now - link->heard_ms > link->timeout_ms;
    if (link->silent)
        return fault(error, "nothing heard from %s for %g s: is the network cut? (--timeout)",
                     link->transport->peer, (double)link->timeout_ms / 1000);
    if (stuck(link, now))
        return fault(error, "some of what %s sent was lost on the way: a record does not end "
                     "(--timeout)", link->transport->peer);
    if (link->idle_ms && now - link->moved_ms > link->idle_ms)
        return fault(error, "no data %s %s for %g s: is the program at one end stuck? "
                     "(--idle-timeout)", link->sends ? "to" : "from", link->transport->peer,
                     (double)link->idle_ms / 1000);
    return 0;
}

void link_abort(struct link *link, const struct error *why)
{
    struct transport *transport = link->transport;
    if (!transport || transport->peer_left)
        return;
    if (!link->told) {
        struct error ignored = {0};
        size_t length = strnlen(why->text, ABORT_BYTES);
        struct record record = {RECORD_ABORT, (uint32_t)length, (uint64_t)why->status};
        say_record(link, &record, why->text, &ignored);
    }
    transport_finish(transport, link->silent || link->told ? 0 : FINISH_MS);
}
