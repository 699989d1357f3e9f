/*
 * Tests of the verbs transport on a fake device (fake_verbs.h): no completion is lost or awaited in
 * vain, the queues hold all posted requests, and incoming messages are validated.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link.h"
#include "transport.h"
#include "check.h"
#include "fake_verbs.h"

enum { CHUNK = CHUNK_LEAST, SOON_MS = 300, LATE_MS = 3000 };

struct end { /* one end of a connection */
    struct transport *base;
    const struct transport_kind *kind;
    struct ring ring;
    struct error why;
};

static uint32_t said(uint8_t *into, int type, uint32_t length, uint64_t number)
{
    memset(into + RECORD_BYTES, 'x', length);
    record_put(into, &(struct record){(uint8_t)type, length, number});
    return RECORD_BYTES + length;
}

static bool hear(int type, uint32_t length, uint64_t number)
{
    uint8_t message[RECORD_BYTES + CHUNK];
    return fake_came(message, said(message, type, length, number));
}

/* Poll at most `most` events and count them; return sent slots to the ring. -1: error. */
static int take(struct end *end, int most)
{
    struct transport_event event;
    int got = 0, count = 0;
    while (count < most && (got = end->kind->poll(end->base, &event, &end->why)) > 0) {
        count++;
        if (event.slot)
            ring_put(&end->ring, &end->ring.free, event.slot);
    }
    return got < 0 ? -1 : count;
}

static int drain(struct end *end)
{
    return take(end, INT_MAX);
}

static void end_open(struct end *end, bool receives, uint32_t credits)
{
    memset(end, 0, sizeof *end);
    end->base = verbs_open(fake_id(), receives, credits, &end->why);
    CHECK(end->base, "%u credits: %s", (unsigned)credits, end->why.text);
    if (!end->base)
        exit(1);
    end->kind = end->base->kind;
    end->base->data_most = CHUNK;
    if (receives) { /* complete the handshake */
        hear(RECORD_HELLO, HELLO_BYTES, 0);
        hear(RECORD_PROOF, PROOF_BYTES, 0);
        CHECK(drain(end) == FIRST_RECEIVES, "no handshake: %s", end->why.text);
    }
    CHECK(ring_open(&end->ring, credits, end->base->spares, CHUNK) == 0, "no ring");
    CHECK(end->kind->ring(end->base, &end->ring, &end->why) == 0, "%s", end->why.text);
}

static void end_close(struct end *end)
{
    end->kind->close(end->base);
    ring_close(&end->ring);
    CHECK(!fake.broken, "%s", fake.broken);
    CHECK(fake.open == 0, "%d objects are left", fake.open);
}

static void post_data(struct end *end)
{
    struct slot *slot;
    while ((slot = ring_take(&end->ring, &end->ring.free))) {
        slot->length = 1;
        said(slot->bytes, RECORD_DATA, 1, 0);
        CHECK(end->kind->post(end->base, slot, &end->why) == 0, "%s", end->why.text);
    }
}

static int control(struct end *end, int type)
{
    uint8_t record[CONTROL_BYTES];
    said(record, type, 0, 0);
    return transport_say(end->base, record, &end->why);
}

/*
 * Post the maximum, complete all of it before polling, and repeat. The device accepts no request
 * above its requested capacity.
 */
static void check_queues(bool receives, uint32_t credits)
{
    struct end end;
    fake_reset();
    end_open(&end, receives, credits);
    for (int round = 0; round < 3; round++) {
        int expected = 0;
        struct slot *slot;
        while (receives && (slot = ring_take(&end.ring, &end.ring.free)))
            CHECK(end.kind->give(end.base, slot, &end.why) == 0, "%s", end.why.text);
        if (!receives)
            post_data(&end);
        for (int i = 0; i < CONTROLS_MOST; i++)
            CHECK(control(&end, RECORD_BYE) == 0, "control %d: %s", i, end.why.text);
        CHECK(control(&end, RECORD_BYE) == 1, "one control record too many is taken");
        CHECK(!end.why.status, "%s", end.why.text);
        CHECK(fake.waiting_receives == CONTROL_RECEIVES + (receives ? credits : 0),
              "%u receives", fake.waiting_receives);
        while (fake_sent(IBV_WC_SUCCESS))
            expected += 1;
        expected -= CONTROLS_MOST; /* these cause no event */
        for (uint32_t i = 0; receives && i < credits; i++)
            expected += hear(RECORD_DATA, 1, 0);
        while (hear(RECORD_HEARTBEAT, 0, 0))
            expected++;
        int got = drain(&end);
        CHECK(got == expected, "%d of %d events: %s", got, expected, end.why.text);
    }
    end_close(&end);
}

/* On a device that refuses the request or offers less, the error must state a remedy. */
static void check_small_devices(void)
{
    for (int which = 0; which < 3; which++) {
        struct error why = {0};
        fake_reset();
        fake.wr_most = which == 0 ? 31 : 0;
        fake.cqe_most = which == 1 ? 43 : 0;
        struct transport *opened = verbs_open(fake_id(), false, 32, &why);
        CHECK(!opened == (which < 2), "device %d: %s", which, why.text);
        CHECK(!why.text[0] == (which == 2), "device %d: %s", which, why.text);
        if (which < 2)
            CHECK(strstr(why.text, "36 sends and 8 receives: ") &&
                      strstr(why.text, "give fewer --credits"), "%s", why.text);
        else
            transport_close(opened);
        CHECK(fake.open == 0 && !fake.broken, "%d left, %s", fake.open, fake.broken);
    }
}

static unsigned chance(unsigned below)
{
    static uint32_t state = 1;
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}

static unsigned to_come;

static void something_comes(void)
{
    if (chance(4) == 0)
        fake_sent(IBV_WC_SUCCESS);
    if (to_come && chance(4) == 0)
        to_come -= hear(RECORD_CREDIT, 0, 1);
}

/*
 * Inject completions at any moment, before, between and after the calls: polling the descriptors of
 * fds() must wake up, unless the event was already returned.
 */
static void check_no_completion_is_lost(void)
{
    for (int round = 0; round < 2000; round++) {
        struct end end;
        int heard = 0, waits = 0;
        fake_reset();
        end_open(&end, false, 1 + chance(4));
        to_come = 20;
        fake.moment = something_comes;
        while (to_come || fake.waiting_sends || fake.queued || heard < 20) {
            struct pollfd polled[TRANSPORT_FDS];
            if (heard < 20)
                post_data(&end);
            int got = drain(&end);
            heard += got;
            CHECK(got >= 0 && ++waits < 10000, "round %d: %s", round, end.why.text);
            int count = end.kind->fds(end.base, polled);
            for (unsigned times = chance(4); times; times--)
                something_comes();
            int ready = poll(polled, (nfds_t)count, 0);
            CHECK(ready > 0 || !fake.queued, "round %d: %u completions wake nobody",
                  round, fake.queued);
            if (got < 0 || waits >= 10000 || (!ready && fake.queued))
                exit(1);
            end.base->quiet = true; /* as in link_wait() */
            for (int i = 0; i < count; i++)
                end.base->quiet &= !polled[i].revents;
        }
        fake.moment = NULL;
        end_close(&end);
    }
}

/* Run the loop of rdsend until there is error. */
static int64_t wait_for_error(struct end *end, const struct options *options,
                                bool beats)
{
    struct link link;
    struct transport_event event;
    struct pollfd no_more[1];
    int64_t begin_ms = now_ms();
    link_open(&link, end->base, options);
    do {
        if (beats) {
            usleep(20000);
            hear(RECORD_HEARTBEAT, 0, 0);
        }
    } while (now_ms() - begin_ms < LATE_MS &&
             link_wait(&link, no_more, 0, &end->why) == 0 &&
             link_next(&link, &event, &end->why) == 0 &&
             link_tick(&link, &end->why) == 0);
    int64_t took_ms = now_ms() - begin_ms;
    link_abort(&link, &end->why);
    return took_ms;
}

/* A silent peer, and a beating peer with a send that never completes, both time out. */
static void check_a_completion_that_never_comes(void)
{
    static const struct {
        struct options options;
        bool beats;
        const char *said;
    } rows[] = {
        {{.timeout_ms = SOON_MS}, false, "nothing heard from"},
        {{.timeout_ms = SOON_MS, .idle_ms = 2 * SOON_MS}, true, "no data from"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct end end;
        fake_reset();
        end_open(&end, false, 1);
        hear(RECORD_CREDIT, 0, 1);
        drain(&end);
        post_data(&end);
        int64_t took_ms = wait_for_error(&end, &rows[i].options, rows[i].beats);
        CHECK(took_ms >= SOON_MS && took_ms < LATE_MS, "%d ms", (int)took_ms);
        CHECK(strstr(end.why.text, rows[i].said), "%s", end.why.text);
        CHECK(fake.disconnected, "the peer is not let go");
        end_close(&end);
    }
    struct end end;
    fake_reset();
    end_open(&end, false, 1);
    post_data(&end);
    int64_t begin_ms = now_ms();
    transport_finish(end.base, SOON_MS);
    int64_t took_ms = now_ms() - begin_ms;
    CHECK(took_ms >= SOON_MS / 2 && took_ms < LATE_MS, "%d ms", (int)took_ms);
    CHECK(fake.disconnected, "the peer is not let go");
    end_close(&end);
}

/* Empty, short and long messages, data before the proof, and another protocol. */
static void check_messages(void)
{
    uint8_t data[RECORD_BYTES + CHUNK], beat[CONTROL_BYTES], noise[64];
    uint32_t whole = said(data, RECORD_DATA, 8, 0);
    memset(noise, 0xa5, sizeof noise);
    said(beat, RECORD_HEARTBEAT, 0, 0);
    const struct {
        const uint8_t *message;
        uint32_t length, data_most;
    } rows[] = {
        {noise, 0, CHUNK}, {beat, RECORD_BYTES - 1, CHUNK}, {noise, 16, CHUNK},
        {data, whole - 1, CHUNK}, {data, whole + 1, CHUNK}, {data, whole, 0},
        {data, whole, 7}, {beat, RECORD_BYTES + 1, CHUNK},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct end end;
        fake_reset();
        end_open(&end, false, 1);
        end.base->data_most = rows[i].data_most;
        CHECK(fake_came(rows[i].message, rows[i].length), "no receive");
        CHECK(drain(&end) < 0 && strstr(end.why.text, "refused what"), "row %zu: %s", i,
              end.why.text);
        end_close(&end);
    }
}

/* Errors of the device and the resulting message. */
static void check_ends(void)
{
    static const struct {
        enum ibv_wc_status status; /* of a send; SUCCESS: everything is flushed */
        bool disconnected;
        const char *said; /* NULL: nothing yet */
    } rows[] = {
        {IBV_WC_RETRY_EXC_ERR, false, "is the network cut?"},
        {IBV_WC_REM_OP_ERR, false, "left without a word"},
        {IBV_WC_LOC_PROT_ERR, true, "is cut off"},
        {IBV_WC_SUCCESS, true, "left without a word"},
        {IBV_WC_SUCCESS, false, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct end end;
        struct pollfd polled[TRANSPORT_FDS];
        fake_reset();
        end_open(&end, false, 4);
        hear(RECORD_CREDIT, 0, 4);
        drain(&end);
        post_data(&end);
        if (rows[i].status != IBV_WC_SUCCESS)
            fake_sent(rows[i].status);
        fake_flush();
        if (rows[i].disconnected)
            fake_event(RDMA_CM_EVENT_DISCONNECTED);
        end.kind->fds(end.base, polled); /* resets `quiet`: the descriptors are ready */
        int got = drain(&end);
        CHECK((got < 0) == (rows[i].said != NULL), "row %zu: %d", i, got);
        CHECK(!rows[i].said || strstr(end.why.text, rows[i].said), "row %zu: %s", i,
              end.why.text);
        CHECK(fake.waiting_receives == 0, "row %zu: a dead queue pair gets receives", i);
        CHECK(!end.kind->left(end.base), "row %zu: it waits for what is flushed", i);
        end_close(&end);
    }
}

/* All memory is pinned by verbs_pin: peers must have neither read nor write access. */
static void check_access(void)
{
    struct end end;
    fake_reset();
    end_open(&end, true, 4); /* pins all the memory there is */
    CHECK(fake.access == IBV_ACCESS_LOCAL_WRITE, "access %#x", (unsigned)fake.access);
    end_close(&end);
}

/* Retries are bounded (7 would be unlimited), and so is the wait for an answer. */
static void check_connect(void)
{
    static const struct {
        enum rdma_cm_event_type answer;
        const char *said; /* NULL: connected */
    } rows[] = {
        {RDMA_CM_EVENT_ESTABLISHED, NULL},
        {RDMA_CM_EVENT_REJECTED, "is rdrecv running there"},
        {RDMA_CM_EVENT_UNREACHABLE, "RDMA_CM_EVENT_UNREACHABLE"},
        {RDMA_CM_EVENT_CONNECT_REQUEST, "no answer in time"},
    };
    struct options options = {.timeout_ms = 10000};
    struct sockaddr_in to = {.sin_family = AF_INET};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error why = {0};
        int64_t begin_ms = now_ms();
        fake_reset();
        fake.answer = rows[i].answer;
        struct transport *transport =
            rdma->connect((struct sockaddr *)&to, NULL, &options, SOON_MS, &why);
        CHECK(!transport == (rows[i].said != NULL), "answer %zu: %s", i, why.text);
        CHECK(!rows[i].said || strstr(why.text, rows[i].said), "%s", why.text);
        CHECK(now_ms() - begin_ms < LATE_MS, "answer %zu: late", i);
        CHECK(fake.wanted.retry_count < 7 && fake.wanted.rnr_retry_count < 7,
              "tries for ever");
        CHECK(fake.wanted.retry_count > 0 && fake.ack_timeout >= ACK_LEAST &&
                  fake.ack_timeout <= ACK_MOST, "time-out %u", fake.ack_timeout);
        transport_close(transport);
        CHECK(fake.open == 0 && !fake.broken, "%d left, %s", fake.open, fake.broken);
    }
}

int main(void)
{
    static const uint32_t credits[] = {1, 2, 16, CREDITS_MOST};
    for (size_t i = 0; i < sizeof credits / sizeof *credits; i++) {
        check_queues(false, credits[i]);
        check_queues(true, credits[i]);
    }
    check_small_devices();
    check_no_completion_is_lost();
    check_a_completion_that_never_comes();
    check_messages();
    check_ends();
    check_access();
    check_connect();
    printf("%d checks of verbs, %d failed\n", checks, failures);
    return failures != 0;
}
