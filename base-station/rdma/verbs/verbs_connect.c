/* RDMA connection set-up with librdmacm. See transport.h. */
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"
#include "options.h"
#include "signals.h"
#include "transport.h"

enum { BACKLOG = 16 };
#define NO_DEVICE "there is no RDMA device here (see ibv_devices)"

/* Create an id with its own event channel. NULL with an errno. */
static struct rdma_cm_id *open_id(void)
{
    struct rdma_cm_id *id = NULL;
    struct rdma_event_channel *events = rdma_create_event_channel();
    if (events && fcntl(events->fd, F_SETFL, O_NONBLOCK) == 0 &&
        rdma_create_id(events, &id, NULL, RDMA_PS_TCP) == 0)
        return id;
    if (events)
        rdma_destroy_event_channel(events);
    return NULL;
}

static void close_id(struct rdma_cm_id *id)
{
    int code = errno;
    struct rdma_event_channel *events = id ? id->channel : NULL;
    if (id)
        rdma_destroy_id(id);
    if (events)
        rdma_destroy_event_channel(events);
    errno = code;
}

/* Wait for the next event of the connection manager. Return 0, or -1 with an error if it differs
 * from the expected one. */
static int expect(struct rdma_cm_id *id, enum rdma_cm_event_type expected, int64_t end_ms,
                  struct error *error)
{
    struct pollfd polled = {id->channel->fd, POLLIN, 0};
    struct rdma_cm_event *event;
    const char *mute = "no answer in time: is that host up, and the way to it?";
    while (rdma_get_cm_event(id->channel, &event) < 0) {
        if (errno != EAGAIN && errno != EINTR)
            return fault(error, "rdma_get_cm_event: %m");
        if (signals_wait(&polled, 1, end_ms, error) <= 0)
            return fault(error, "%s", mute);
    }
    enum rdma_cm_event_type got = event->event;
    int status = event->status;
    rdma_ack_cm_event(event);
    if (got == expected)
        return 0;
    const char *why = rdma_event_str(got);
    if (status == -ETIMEDOUT) /* the kernel's own timer was first */
        why = mute;
    else if (got == RDMA_CM_EVENT_ADDR_ERROR || got == RDMA_CM_EVENT_ROUTE_ERROR)
        why = "no route to it by an RDMA device";
    else if (got == RDMA_CM_EVENT_REJECTED)
        why = "refused: is rdrecv running there, with RDMA, on this port?";
    return fault(error, "%s", why);
}

/* Return true if a device of this name, up to a colon, is present. NULL: any device. List all names
 * in `names`, if there is space. */
static bool device_here(const char *wanted, char *names, size_t room)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    bool found = false;
    for (int i = 0; devices && devices[i]; i++) {
        const char *name = ibv_get_device_name(devices[i]);
        size_t length = strlen(name), end = room ? strlen(names) : 0;
        found |= !wanted || (strcspn(wanted, ":") == length && strncmp(name, wanted, length) == 0);
        if (room)
            snprintf(names + end, room - end, " %s", name);
    }
    if (devices)
        ibv_free_device_list(devices);
    return found;
}

static bool any_device(void)
{
    return device_here(NULL, NULL, 0);
}

/* Return how many data records this end may have in flight. Return -1 with an error and errno
 * ENOMEM if too little memory may be pinned; this is logged, because a user with an RDMA device
 * does not expect TCP. */
static int64_t credits_here(const struct options *options, struct error *error)
{
    struct hello mine;
    if (hello_of_options(&mine, options, TRANSPORT_RDMA, error) >= 0)
        return mine.credits;
    if (options->transport == WANT_AUTO && !options->verbose)
        say("TCP only, for over RDMA: %s", error->text);
    errno = ENOMEM;
    return -1;
}

/* Cast for librdmacm: its addresses are not const, but it does not write to them. */
static struct sockaddr *as_theirs(const struct sockaddr *address)
{
    return (struct sockaddr *)(uintptr_t)address;
}

static bool has(const struct sockaddr *address)
{
    struct rdma_cm_id *id = open_id();
    bool found = id && rdma_bind_addr(id, as_theirs(address)) == 0 && id->verbs;
    close_id(id);
    return found;
}

static void name_device(const struct rdma_cm_id *id, char *into, size_t room)
{
    snprintf(into, room, "%s:%d", ibv_get_device_name(id->verbs->device), id->port_num);
}

/* Return true for the device that --device DEV[:PORTNUM] selects. */
static bool right_device(const struct rdma_cm_id *id, const struct options *options)
{
    char name[64];
    if (!options->device)
        return true;
    name_device(id, name, sizeof name);
    if (!strchr(options->device, ':'))
        name[strcspn(name, ":")] = '\0';
    return strcmp(name, options->device) == 0;
}

/* No remote reads or writes. */
#define PARAMETERS                                                                     \
    &(struct rdma_conn_param) {                                                        \
        .retry_count = VERBS_RETRIES, .rnr_retry_count = VERBS_RETRIES                 \
    }

/* Set the retry time of the queue pair longer than the time-out of a silent peer, which detects a
 * long outage (link.h). The first attempt and VERBS_RETRIES more take 4.096 us * 2^n each. */
static void set_ack_timeout(struct rdma_cm_id *id, const struct options *options)
{
    int64_t enough_ms = options->timeout_ms + ACK_MARGIN_MS;
    uint8_t value = ACK_LEAST;
    while (value < ACK_MOST && (!options->timeout_ms ||
                                (INT64_C(4096) << value) * (1 + VERBS_RETRIES) <
                                    enough_ms * 1000000))
        value++;
    /* Old kernels reject the option; the default of the path then applies. */
    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &value, sizeof value);
}

static void know_peer(struct transport *transport, struct rdma_cm_id *id,
                      const struct sockaddr *peer, const struct options *options)
{
    transport_name(transport, peer);
    name_device(id, transport->device, sizeof transport->device);
    set_ack_timeout(id, options);
}

static int resolve(struct rdma_cm_id *id, const struct sockaddr *address,
                   const struct sockaddr *from, const struct options *options,
                   int64_t end_ms, struct error *error)
{
    int limit_ms = (int)(end_ms - now_ms());
    if (rdma_resolve_addr(id, as_theirs(from), as_theirs(address), limit_ms) < 0)
        return fault(error, "no route to it by an RDMA device: %m");
    if (expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, end_ms, error) < 0)
        return -1;
    if (!id->verbs)
        return fault(error, "the route to it is not by an RDMA device");
    if (!right_device(id, options)) {
        char name[64];
        name_device(id, name, sizeof name);
        return fault(error, "the route to it is by %s, not by %s", name, options->device);
    }
    if (rdma_resolve_route(id, limit_ms) < 0)
        return fault(error, "the route to it is not by an RDMA device: %m");
    return expect(id, RDMA_CM_EVENT_ROUTE_RESOLVED, end_ms, error);
}

static struct transport *verbs_connect(const struct sockaddr *address, const struct sockaddr *from,
                                       const struct options *options, int64_t limit_ms,
                                       struct error *error)
{
    int64_t end_ms = now_ms() + limit_ms, credits = 0;
    struct rdma_cm_id *id = NULL;
    if (!any_device())
        fault(error, NO_DEVICE);
    else if ((credits = credits_here(options, error)) < 0)
        return NULL;
    else if (!(id = open_id()))
        fault(error, "librdmacm: %m: is rdma_ucm loaded?");
    else
        resolve(id, address, from, options, end_ms, error);
    if (error->status) {
        close_id(id);
        return NULL;
    }
    struct transport *transport = verbs_open(id, false, (uint32_t)credits, error);
    if (!transport)
        return NULL;
    know_peer(transport, id, address, options);
    if (rdma_connect(id, PARAMETERS) < 0)
        fault(error, "rdma_connect: %m");
    else if (expect(id, RDMA_CM_EVENT_ESTABLISHED, end_ms, error) == 0)
        return transport;
    transport_close(transport);
    return NULL;
}

static struct rdma_cm_id *verbs_listen(const struct sockaddr *bound, const struct options *options,
                                       struct error *error)
{
    struct rdma_cm_id *id = NULL;
    char names[160] = "";
    errno = ENODEV;
    if (!device_here(options->device, names, sizeof names)) {
        fault(error, *names ? "no RDMA device %.60s here: there is%s" : NO_DEVICE,
              options->device, names);
        return NULL;
    }
    if (credits_here(options, error) < 0)
        return NULL;
    if ((id = open_id()) && rdma_bind_addr(id, as_theirs(bound)) == 0 &&
        rdma_listen(id, BACKLOG) == 0)
        return id;
    fault(error, "%m");
    close_id(id);
    return NULL;
}

static int listener_fd(const struct rdma_cm_id *id)
{
    return id->channel->fd;
}

/* Accept a request and own its id. NULL: it failed, and the error is logged. */
static struct transport *accept_request(struct rdma_cm_id *id, const struct options *options)
{
    struct error why = {0};
    struct hello mine;
    struct rdma_event_channel *events = NULL;
    struct transport *transport;
    if (!right_device(id, options))
        fault(&why, "it came by another device");
    else if (hello_of_options(&mine, options, TRANSPORT_RDMA, &why) >= 0 &&
             (!(events = rdma_create_event_channel()) || rdma_migrate_id(id, events) < 0))
        fault(&why, "%m");
    if (why.status) {
        rdma_reject(id, NULL, 0);
        rdma_destroy_id(id);
        if (events)
            rdma_destroy_event_channel(events);
    } else if ((transport = verbs_open(id, true, mine.credits, &why))) {
        know_peer(transport, id, rdma_get_peer_addr(id), options);
        if (rdma_accept(id, PARAMETERS) == 0)
            return transport;
        fault(&why, "rdma_accept: %m");
        transport_close(transport);
    }
    say("an RDMA connection came to nothing: %s", why.text);
    return NULL;
}

static struct transport *verbs_accept(struct rdma_cm_id *listener, const struct options *options)
{
    struct transport *transport = NULL;
    struct rdma_cm_event *event;
    while (!transport && rdma_get_cm_event(listener->channel, &event) == 0) {
        bool request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
        struct rdma_cm_id *id = event->id;
        rdma_ack_cm_event(event); /* before the id may leave this channel */
        transport = request ? accept_request(id, options) : NULL;
    }
    return transport;
}

static const struct rdma verbs_rdma = {
    .has = has,
    .any_device = any_device,
    .connect = verbs_connect,
    .listen = verbs_listen,
    .fd = listener_fd,
    .accept = verbs_accept,
    .close = close_id,
};
const struct rdma *const rdma = &verbs_rdma;
