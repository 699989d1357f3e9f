/* Runs a chain of segments: see pipe.h.
 *
 * Every end gets a leash at once, but where an ssh may ask a person for a password, one
 * ssh after the other. A segment runs as soon as the one after it has
 * announced where it listens, so the chain comes up from its last end to its first.
 */
#include "pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "descriptors.h"
#include "pipe_end.h"
#include "quote.h"
#include "signals.h"
#include "trouble.h"
#include "verdict.h"

/* How long the others have to hear of a fault through the hops, and say why. */
enum { AFTER_FAULT_MS = 1000, AFTER_LETTING_GO_MS = 2500 };

struct pipe_run {
    const struct pipe_settings *settings;
    struct pipe_end *ends;
    size_t count;
    int signal_fd;
    int stdin_fd; /* -1 = /dev/null */
    bool terminal; /* there is one at which an ssh may ask */
    int caught;    /* the signal that ended it */
    int faults;   /* ends that failed so far */
    char token[LEASH_TOKEN + 1]; /* that who dials back says */
    int64_t beaten_ms, fault_ms, let_go_ms; /* 0 = not yet */
};

static bool is_null_device(int fd)
{
    struct stat state;
    return fstat(fd, &state) < 0 ||
           (S_ISCHR(state.st_mode) && state.st_rdev == makedev(1, 3));
}

static void add_end(struct pipe_run *run, const struct pipe_segment *segment, int number)
{
    static const struct pipe_segment own = {.middle = LEASH_PASS};
    struct pipe_end *end = &run->ends[run->count++];
    const struct pipe_segment *from = segment ? segment : &own;
    *end = (struct pipe_end){
        .host = from->host,
        .label = from->label ? from->label : run->count == 1 ? "stdin" : "stdout",
        .number = number,
        .middle = from->middle,
        .shell = from->shell,
        .hop = (int)run->count - 1,
        .words = &from->words,
        .control_fd = -1,
        .answer_fd = -1,
        .command_status = -1,
        .status = -1,
        .heard_ms = now_ms(),
    };
}

/* A hop between each two ends, each with a key of its own. */
static int join(struct pipe_run *run)
{
    for (size_t i = 1; i < run->count; i++) {
        struct pipe_end *from = &run->ends[i - 1], *to = &run->ends[i];
        if (hex_random(from->key_out, LEASH_KEY) < 0)
            return -1;
        memcpy(to->key_in, from->key_out, sizeof to->key_in);
        from->has_out = to->has_in = true;
    }
    return 0;
}

static int lay_out(struct pipe_run *run, const struct pipe_segment *segments,
                   size_t count)
{
    run->ends = allocated(calloc(count + 2, sizeof *run->ends));
    const struct pipe_segment *first = segments, *last = segments + count - 1;
    bool file = last->middle == LEASH_WRITE || last->middle == LEASH_APPEND;
    /* A file that is written has to be sent from somewhere. */
    if ((first->host && first->middle == LEASH_EXEC && run->stdin_fd >= 0) ||
        (file && first == last))
        add_end(run, NULL, 0);
    for (size_t i = 0; i < count; i++)
        add_end(run, &segments[i], (int)i + 1);
    /* A file that is read has to be sent somewhere, on this machine too. */
    if ((last->host && !file && run->settings->own_stdout) ||
        (last->middle == LEASH_READ))
        add_end(run, NULL, 0);
    run->ends->typed = run->stdin_fd >= 0 && isatty(STDIN_FILENO);
    run->ends->may = LEASH_FRAME;
    return hex_random(run->token, LEASH_TOKEN) < 0 ? -1 : join(run);
}

static bool reads_stdin(const struct pipe_settings *settings,
                        const struct pipe_segment *first)
{
    return settings->own_stdin && first->middle != LEASH_READ &&
           !is_null_device(STDIN_FILENO);
}

/* Is what is typed now for the first segment? Not before every session stands: until then
 * it may be a password, which is for ssh. */
static bool typing(const struct pipe_run *run)
{
    const struct pipe_end *first = run->ends;
    pid_t foreground = tcgetpgrp(STDIN_FILENO); /* another's: it would be stopped */
    for (size_t i = 0; i < run->count; i++)
        if (!run->ends[i].greeted)
            return false;
    return first->typed && !first->type_over && first->may && first->control_fd >= 0 &&
           (foreground < 0 || foreground == getpgrp());
}

/* --via HOST=ADDRESS says where a host is; to free, NULL if none does. */
static char *via(const struct pipe_settings *settings, const char *host)
{
    const char *at = host ? strchr(host, '@') : NULL;
    const char *name = at ? at + 1 : host;
    size_t length = name ? strlen(name) : 0;
    for (size_t i = 0; name && i < settings->via.count; i++) {
        const char *text = settings->via.word[i];
        if (strncmp(text, name, length) == 0 && text[length] == '=')
            return allocated(strdup(text + length + 1));
    }
    return NULL;
}

/* Where `from` reaches `to`, which said where it listens. */
static char *addresses_of(const struct pipe_run *run, const struct pipe_end *from,
                          const struct pipe_end *to, const char *said)
{
    char *given = via(run->settings, to->host);
    char *announced = given ? given : leash_field(said, "addresses");
    if (given || !announced || !same_text(from->host, to->host))
        return announced;
    char *nearest = text_of("127.0.0.1,%s", announced);
    free(announced);
    return nearest;
}

static void open_end(struct pipe_run *run, size_t which)
{
    struct pipe_end *end = &run->ends[which];
    bool last = which + 1 == run->count;
    int in = which == 0 && !end->typed ? run->stdin_fd : -1;
    int out = last && run->settings->own_stdout ? STDOUT_FILENO : -1;
    if (pipe_end_open(end, run->settings, in, out) == 0)
        return;
    end->done = true;
    end->note = text_of("cannot start: %m");
}

/* Two that ask for a password at one terminal would show it: the first to have its answer
 * switches the echo on again. So each waits for the one before it to be through. */
static void open_ends(struct pipe_run *run)
{
    bool asking = false;
    for (size_t i = 0; i < run->count; i++) {
        struct pipe_end *end = &run->ends[i];
        if (!end->pid && !end->done && !(end->host && asking))
            open_end(run, i);
        asking |= run->terminal && end->host && !end->greeted && !end->done;
    }
}

/* The line that says which way it is, where it is not straight. */
static void tell_way(const struct pipe_run *run, const struct pipe_end *end)
{
    const char *from = end->host ? end->host : "here";
    const char *to = end[1].host ? end[1].host : "here";
    bool back = end->way == LEASH_BACK;
    fprintf(stderr, "%s: from %s to %s: %s%s\n", run->settings->program, from, to,
            back ? "the data's connection is dialed back"
                 : "the data goes through the SSH session, which is slower",
            run->settings->way == (int)end->way
                ? "" : " (no port is reached: --port names those that a firewall lets in)");
}

static int try_way(struct pipe_run *run, struct pipe_end *end, enum leash_way way)
{
    pipe_end_try(end, way, run->token, run->settings->ports);
    if (way != LEASH_THROUGH_SSH)
        return 0;
    tell_way(run, end);
    return pipe_end_tunnel(end + 1);
}

/* Straight, else dialed back, else through the sessions. */
static void mind_ways(struct pipe_run *run)
{
    for (size_t i = 0; i + 1 < run->count; i++) {
        struct pipe_end *end = &run->ends[i], *next = end + 1;
        int result = 0;
        if (end->unreached_out && end->way != LEASH_THROUGH_SSH)
            result = try_way(run, end, end->way + 1);
        else if (next->unreached_in && end->way == LEASH_BACK)
            result = try_way(run, end, LEASH_THROUGH_SSH);
        end->unreached_out = next->unreached_in = false;
        if (end->awaits) {
            char *addresses = addresses_of(run, next, end, end->awaits);
            result |= pipe_end_dial(next, run->token, end->awaits, addresses);
            free(addresses);
            free(end->awaits);
            end->awaits = NULL;
        }
        if (end->reached)
            tell_way(run, end);
        end->reached = false;
        if (result < 0)
            pipe_end_let_go(end);
    }
}

/* Runs each end whose next one listens. */
static void run_ready(struct pipe_run *run)
{
    for (size_t i = run->count; i-- > 0;) {
        struct pipe_end *end = &run->ends[i];
        struct pipe_end *next = i + 1 < run->count ? end + 1 : NULL;
        if (end->running || (next && !next->announcement) || end->control_fd < 0)
            continue;
        if (!next) {
            pipe_end_run(end, NULL, NULL, NULL);
            continue;
        }
        char *port = leash_field(next->announcement, "port");
        char *transports = leash_field(next->announcement, "transports");
        char *addresses = addresses_of(run, end, next, next->announcement);
        bool direct = same_text(end->host, next->host) || same_text(transports, "rdma");
        enum leash_way way = direct ? LEASH_STRAIGHT : run->settings->way;
        bool known = port && transports && addresses;
        if (known)
            pipe_end_run(end, port, transports, addresses);
        if (!known || try_way(run, end, way) < 0)
            pipe_end_let_go(end);
        free(addresses);
        free(transports);
        free(port);
    }
}

static void judge(const struct pipe_run *run, struct verdict_end *ends)
{
    for (size_t i = 0; i < run->count; i++)
        ends[i] = (struct verdict_end){
            .command = run->ends[i].middle == LEASH_EXEC,
            .command_status = run->ends[i].command_status,
            .status = run->ends[i].status,
            .order = run->ends[i].order,
        };
    verdict_settle(ends, run->count);
}

static void let_go(struct pipe_run *run, int64_t now)
{
    for (size_t i = 0; i < run->count; i++) {
        pipe_end_let_go(&run->ends[i]);
        run->ends[i].done |= !run->ends[i].pid; /* nor will it be started */
    }
    run->let_go_ms = run->let_go_ms ? run->let_go_ms : now;
}

/* Has an end failed for good, so that the others have to follow soon? One that was not
 * running yet never will. */
static void look_for_fault(struct pipe_run *run, int64_t now)
{
    struct verdict_end *ends = allocated(calloc(run->count, sizeof *ends));
    judge(run, ends);
    bool all_running = true, fault = false;
    for (size_t i = 0; i < run->count; i++) {
        struct pipe_end *end = &run->ends[i];
        all_running &= end->running;
        if (end->done && end->status && end->status != LEASH_LET_GO && !end->order)
            end->order = ++run->faults;
        fault |= end->done && verdict_failed(ends, run->count, i);
    }
    free(ends);
    if (!fault) {
        run->fault_ms = 0;
        return;
    }
    run->fault_ms = run->fault_ms ? run->fault_ms : now;
    if (!all_running || now - run->fault_ms >= AFTER_FAULT_MS)
        let_go(run, now);
}

static void mind_time(struct pipe_run *run, int64_t now)
{
    for (size_t i = 0; i < run->count; i++) {
        struct pipe_end *end = &run->ends[i];
        if (end->done || !end->greeted || now - end->heard_ms <= LEASH_SILENCE_MS)
            continue;
        end->silent = end->done = true;
        kill(end->pid, SIGKILL);
        pipe_end_let_go(end);
    }
    if (now - run->beaten_ms < LEASH_BEAT_MS)
        return;
    for (size_t i = 0; i < run->count; i++)
        pipe_end_beat(&run->ends[i]);
    run->beaten_ms = now;
}

static void take_signal(struct pipe_run *run, int64_t now)
{
    int number = signals_number(run->signal_fd);
    if (number) {
        run->caught = number;
        let_go(run, now);
    }
}

static bool over(const struct pipe_run *run, int64_t now)
{
    if (run->let_go_ms && now - run->let_go_ms >= AFTER_LETTING_GO_MS)
        return true;
    for (size_t i = 0; i < run->count; i++)
        if (!run->ends[i].done)
            return false;
    return true;
}

static void attend(struct pipe_run *run, struct pollfd *polled)
{
    while (!over(run, now_ms())) {
        open_ends(run);
        run_ready(run);
        mind_ways(run);
        for (size_t i = 0; i < run->count; i++) {
            struct pipe_end *end = &run->ends[i];
            pipe_end_flush(end);
            polled[2 * i] = (struct pollfd){end->done ? -1 : end->answer_fd, POLLIN, 0};
            polled[2 * i + 1] = (struct pollfd){
                end->control.length ? end->control_fd : -1, POLLOUT, 0};
        }
        polled[2 * run->count] = (struct pollfd){run->signal_fd, POLLIN, 0};
        polled[2 * run->count + 1] =
            (struct pollfd){typing(run) ? STDIN_FILENO : -1, POLLIN, 0};
        poll(polled, 2 * run->count + 2, 200);
        int64_t now = now_ms();
        for (size_t i = 0; i < run->count; i++)
            if (polled[2 * i].revents)
                pipe_end_listen(&run->ends[i], now);
        if (polled[2 * run->count + 1].revents)
            pipe_end_type(run->ends);
        take_signal(run, now);
        look_for_fault(run, now);
        mind_time(run, now);
    }
}

static void name(const struct pipe_run *run, const struct pipe_end *end)
{
    struct bytes what = {0};
    quote_shown(&what, end->label);
    fprintf(stderr, "%s: ", run->settings->program);
    if (end->number)
        fprintf(stderr, "segment %d (%s): ", end->number, what.data);
    else
        fprintf(stderr, "%s: ", end->label);
    bytes_close(&what);
}

static void tell(const struct pipe_run *run, const struct pipe_end *end)
{
    name(run, end);
    if (end->note)
        fprintf(stderr, "%s\n", end->note);
    else if (end->silent)
        fprintf(stderr, "nothing heard from there for 10 s\n");
    else if (end->command_status > 0)
        fprintf(stderr, "exit status %d\n", end->command_status);
    else if (end->host && !end->greeted && end->status == 127)
        fprintf(stderr, "no rdrecv found there: install it or give --remote-path\n");
    else if (end->host && !end->greeted)
        fprintf(stderr, "no session: ssh ended with status %d\n", end->status);
    else
        fprintf(stderr, "did not go through, status %d\n", end->status);
}

static int conclude(const struct pipe_run *run)
{
    struct verdict_end *ends = allocated(calloc(run->count, sizeof *ends));
    judge(run, ends);
    size_t which = 0;
    int status = verdict(ends, run->count, &which);
    for (size_t i = 0; i < run->count && status && !run->caught; i++) {
        struct pipe_end *end = &run->ends[i];
        end->command_status = ends[i].command_status;
        if (end->command_status > 0 && end->command_status <= run->settings->says_why)
            continue;
        if (i == which || end->command_status > 0 || end->note || end->silent)
            tell(run, end);
    }
    free(ends);
    return run->caught ? 128 + run->caught : status;
}

static void close_ends(struct pipe_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        pipe_end_stop(&run->ends[i]);
    for (size_t i = 0; i < run->count; i++)
        if (pipe_end_close(&run->ends[i]) < 0) {
            name(run, &run->ends[i]);
            fprintf(stderr, "could not be ended\n");
        }
}

static void pipe_run_close(struct pipe_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        free(run->ends[i].announcement);
        free(run->ends[i].awaits);
        free(run->ends[i].note);
    }
    free(run->ends);
    shut(&run->signal_fd);
}

static bool has_terminal(void)
{
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    bool has = fd >= 0;
    shut(&fd);
    return has;
}

int pipe_run(const struct pipe_settings *settings, const struct pipe_segment *segments,
             size_t count, int *caught)
{
    struct pipe_run run = {
        .settings = settings,
        .signal_fd = -1,
        .stdin_fd = reads_stdin(settings, segments) ? STDIN_FILENO : -1,
        .terminal = has_terminal(),
    };
    int status = 1;
    struct pollfd *polled = allocated(calloc(2 * count + 6, sizeof *polled));
    if ((run.signal_fd = signals_watch()) >= 0 &&
        lay_out(&run, segments, count) == 0) {
        attend(&run, polled);
        status = 0;
    } else {
        fprintf(stderr, "%s: cannot start: %m\n", settings->program);
    }
    close_ends(&run);
    status = status ? status : conclude(&run);
    *caught = run.caught;
    free(polled);
    pipe_run_close(&run);
    return status;
}
