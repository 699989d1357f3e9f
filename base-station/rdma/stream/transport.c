/* Common code of all transports: see transport.h. */
#include "transport.h"

#include <string.h>

#include "net.h"
#include "signals.h"

enum { LOOK_MS = 50 }; /* poll interval for unsent data, in the absence of events */

void transport_open(struct transport *transport, const struct transport_kind *kind,
                    uint8_t *memory)
{
    transport->kind = kind;
    for (int i = 0; i < CONTROLS_MOST; i++) {
        transport->control[i].bytes = memory + (size_t)i * CONTROL_BYTES;
        slots_put(&transport->control_free, &transport->control[i]);
    }
}

void transport_name(struct transport *transport, const struct sockaddr *peer)
{
    net_name(peer, transport->peer, sizeof transport->peer);
    transport->foreign = net_is_foreign(peer);
}

int transport_refuse(const struct transport *transport, const char *why,
                     struct error *error)
{
    return fault(error, "refused what %s sent: %s", transport->peer, why);
}

bool transport_controls(const struct transport *transport, const struct slot *slot)
{
    return slot >= transport->control && slot < transport->control + CONTROLS_MOST;
}

int transport_say(struct transport *transport, const uint8_t *record,
                  struct error *error)
{
    struct slots *free = &transport->control_free;
    struct record header;
    const char *why = record_get(&header, record, 0);
    if (why)
        return fault(error, "cannot send: %s", why);
    bool later = header.type == RECORD_HEARTBEAT || header.type == RECORD_CREDIT;
    if (!free->first || (later && free->first == free->last))
        return 1;
    struct slot *slot = slots_take(free);
    slot->length = header.length;
    memcpy(slot->bytes, record, RECORD_BYTES + header.length);
    return transport->kind->post(transport, slot, error);
}

void transport_finish(struct transport *transport, int limit_ms)
{
    int64_t begin_ms = now_ms(), end_ms = begin_ms;
    uint64_t left, least = UINT64_MAX;
    struct error ignored = {0};
    while ((left = transport->kind->left(transport))) {
        int64_t now = now_ms();
        if (left < least)
            end_ms = now + limit_ms;
        least = left < least ? left : least;
        struct pollfd polled[TRANSPORT_FDS];
        int count = transport->kind->fds(transport, polled);
        if (now >= end_ms || now >= begin_ms + FINISH_MOST_MS ||
            signals_wait(polled, count, now + LOOK_MS, &ignored) < 0)
            break;
    }
    if (transport->kind->leave)
        transport->kind->leave(transport);
}

void transport_close(struct transport *transport)
{
    if (transport)
        transport->kind->close(transport);
}
