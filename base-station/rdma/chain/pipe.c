/* Run a chain of segments: see pipe.h.
 *
 * All agents start at once, except that ssh processes that may ask for a password start one
 * after another. A segment runs as soon as the next one has announced its address, so the chain
 * comes up from its last end to its first. Only a source starts earlier, to walk its trees in
 * the meantime. */
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
#include "signals.h"
#include "error.h"

/* Time for the other ends to detect a fault through the hops and report it. */
enum { AFTER_FAULT_MS = 1000, AFTER_RELEASE_MS = 2500 };

struct pipe_run {
    const struct pipe_settings *settings;
    struct pipe_end *ends;
    struct end_status *statuses; /* of each end */
    size_t count;
    int signal_fd;
    int stdin_fd; /* -1 = /dev/null */
    bool terminal; /* a terminal exists where ssh may ask for a password */
    int caught;    /* the signal that ended the run */
    int faults;   /* ends that failed so far */
    int64_t beat_ms, fault_ms, released_ms; /* 0 = not yet */
};

static bool is_null_device(int fd)
{
    struct stat state;
    return fstat(fd, &state) < 0 ||
           (S_ISCHR(state.st_mode) && state.st_rdev == makedev(1, 3));
}

static void add_end(struct pipe_run *run, const struct pipe_segment *segment, int number)
{
    static const struct pipe_segment own = {.middle = AGENT_PASS};
    size_t which = run->count++;
    const struct pipe_segment *from = segment ? segment : &own;
    run->statuses[which] = (struct end_status){.command = agent_is_command(from->middle),
                                            .command_status = -1, .status = -1};
    run->ends[which] = (struct pipe_end){
        .settings = run->settings,
        .host = from->host,
        .label = from->label ? from->label : which == 0 ? "stdin" : "stdout",
        .number = number,
        .work = {.middle = from->middle, .words = from->words, .key_in = "", .key_out = "",
                 .port = "", .addresses = "",
                 .back = run->settings->back && from->middle == AGENT_RDCP},
        .control = {.secret = true},
        .control_fd = -1,
        .answer_fd = -1,
        .received_ms = now_ms(),
        .status = &run->statuses[which],
    };
}

/* Append the tools' options; --hop adds the location to each line they print with -v. */
static void add_options(struct words *into, const struct words *options,
                        const struct pipe_end *end, size_t hop)
{
    for (size_t i = 0; i < options->count; i++)
        words_add(into, options->word[i]);
    words_add_text(into, text_of("--hop=%s, hop %zu", end->host ? end->host : "here", hop));
}

/* Connect neighbouring ends by hops, each with its own key. */
static int join(struct pipe_run *run)
{
    const struct pipe_settings *settings = run->settings;
    for (size_t i = 1; i < run->count; i++) {
        struct pipe_end *from = &run->ends[i - 1], *to = &run->ends[i];
        if (hex_random(from->key_out, AGENT_KEY) < 0)
            return -1;
        from->work.key_out = to->work.key_in = from->key_out;
        add_options(&from->work.out, &settings->out_options, from, i);
        add_options(&to->work.in, &settings->in_options, to, i);
    }
    struct pipe_end *last = &run->ends[run->count - 1];
    if (settings->sync && last->work.middle == AGENT_WRITE)
        words_add(&last->work.in, "--sync");
    return 0;
}

static int lay_out(struct pipe_run *run, const struct pipe_segment *segments, size_t count)
{
    run->ends = allocated(calloc(count + 2, sizeof *run->ends));
    run->statuses = allocated(calloc(count + 2, sizeof *run->statuses));
    const struct pipe_segment *first = segments, *last = segments + count - 1;
    bool file = last->middle == AGENT_WRITE, command = agent_is_command(first->middle);
    bool apart = first->host || isatty(STDIN_FILENO); /* a command is in the background of it */
    /* A written file needs a sender. */
    if ((command && apart && run->stdin_fd >= 0) || (file && first == last))
        add_end(run, NULL, 0);
    for (size_t i = 0; i < count; i++)
        add_end(run, &segments[i], (int)i + 1);
    /* A file that is read needs a receiver, also on this machine. */
    if ((last->host && !file && run->settings->own_stdout) || (last->middle == AGENT_READ))
        add_end(run, NULL, 0);
    return join(run);
}

static bool reads_stdin(const struct pipe_settings *settings, const struct pipe_segment *first)
{
    return settings->own_stdin && first->middle != AGENT_READ &&
           !is_null_device(STDIN_FILENO);
}

static void open_end(struct pipe_run *run, size_t which)
{
    struct pipe_end *end = &run->ends[which];
    bool last = which + 1 == run->count;
    int in = which == 0 ? run->stdin_fd : -1;
    int out = last && run->settings->own_stdout ? STDOUT_FILENO : -1;
    if (pipe_end_open(end, in, out) == 0)
        return;
    end->done = true;
    end->note = text_of("cannot start: %m");
}

/* Start ssh processes one after another while they may ask for a password. With two at one
 * terminal, the first to finish would switch the echo on while the other is still asking. */
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

/* Run each end if the next one is listening. */
static void run_ready(struct pipe_run *run)
{
    pipe_end_run_ahead(run->ends);
    for (size_t i = run->count; i-- > 0;) {
        struct pipe_end *end = &run->ends[i];
        bool last = i + 1 == run->count;
        if (!end->running && end->control_fd >= 0 && (last || end[1].announcement))
            pipe_end_run(end);
    }
}

/* Keep the other machine's note, quoted for display. */
static void take_note(struct pipe_end *end, const char *text)
{
    struct bytes note = {0};
    quote_shown(&note, text);
    free(end->note);
    end->note = note.data;
}

static void take(const struct pipe_run *run, struct pipe_end *end, const struct agent_frame *frame)
{
    const char *text = frame->verb != AGENT_FLOW && frame->length ? frame->body : "";
    switch (frame->verb) {
    case AGENT_ANNOUNCE:
        if (!end->announcement)
            end->announcement = allocated(strdup(text));
        break;
    case AGENT_UNREACHED: pipe_end_unreached(end); break;
    case AGENT_STATUS: end->status->command_status = (int)agent_frame_number(frame, 255); break;
    case AGENT_EXIT: end->status->status = (int)agent_frame_number(frame, 255); break;
    case AGENT_NOTE: take_note(end, text); break;
    case AGENT_FLOW:
        if (frame->length && run->settings->begun)
            *run->settings->begun = true;
        pipe_end_pass_on(end, frame);
        break;
    case AGENT_ACK: pipe_end_pass_on(end, frame); break;
    default: break;
    }
}

static void take_frames(const struct pipe_run *run, struct pipe_end *end, int64_t now)
{
    struct agent_frame frame;
    pipe_end_read(end, now);
    while (pipe_end_next(end, &frame)) {
        take(run, end, &frame);
        agent_frame_drop(&end->answers, &frame);
    }
}

static void release(struct pipe_run *run, int64_t now)
{
    for (size_t i = 0; i < run->count; i++) {
        pipe_end_release(&run->ends[i]);
        run->ends[i].done |= !run->ends[i].pid; /* and will never be started */
    }
    run->released_ms = run->released_ms ? run->released_ms : now;
}

/* Check for an end that failed for good. The other ends have to end soon then; ends that are not
 * running yet never start. */
static void look_for_fault(struct pipe_run *run, int64_t now)
{
    bool all_running = true, fault = false;
    exit_status_settle(run->statuses, run->count);
    for (size_t i = 0; i < run->count; i++) {
        const struct pipe_end *end = &run->ends[i];
        struct end_status *status = end->status;
        all_running &= end->running;
        if (end->done && status->status && status->status != AGENT_RELEASED && !status->order)
            status->order = ++run->faults;
        fault |= end->done && exit_status_failed(run->statuses, run->count, i);
    }
    run->fault_ms = !fault ? 0 : run->fault_ms ? run->fault_ms : now;
    if (fault && (!all_running || now - run->fault_ms >= AFTER_FAULT_MS))
        release(run, now);
}

static void mind_time(struct pipe_run *run, int64_t now)
{
    bool patient = run->terminal || !run->settings->timeout;
    for (size_t i = 0; i < run->count; i++)
        pipe_end_mind_time(&run->ends[i], patient, now);
    if (now - run->beat_ms < AGENT_BEAT_MS)
        return;
    for (size_t i = 0; i < run->count; i++)
        pipe_end_beat(&run->ends[i]);
    run->beat_ms = now;
}

static void take_signal(struct pipe_run *run, int64_t now)
{
    int number = signals_number(run->signal_fd);
    if (number) {
        run->caught = number;
        release(run, now);
    }
}

static bool over(const struct pipe_run *run, int64_t now)
{
    if (run->released_ms && now - run->released_ms >= AFTER_RELEASE_MS)
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
        for (size_t i = 0; i < run->count; i++) {
            struct pipe_end *end = &run->ends[i];
            pipe_end_flush(end);
            polled[2 * i] = (struct pollfd){end->done ? -1 : end->answer_fd, POLLIN, 0};
            polled[2 * i + 1] = (struct pollfd){
                end->control.length ? end->control_fd : -1, POLLOUT, 0};
        }
        polled[2 * run->count] = (struct pollfd){run->signal_fd, POLLIN, 0};
        poll(polled, 2 * run->count + 1, 200);
        int64_t now = now_ms();
        for (size_t i = 0; i < run->count; i++)
            if (polled[2 * i].revents)
                take_frames(run, &run->ends[i], now);
        take_signal(run, now);
        look_for_fault(run, now);
        mind_time(run, now);
    }
}

static void print_name(const struct pipe_run *run, const struct pipe_end *end)
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

/* Print why no agent greeted from another machine, and the last output of its login shell. */
static void print_no_session(const struct pipe_end *end)
{
    int status = end->status->status;
    struct bytes login = {0};
    quote_shown_bytes(&login, end->login.data, end->login.length);
    if (end->silent_ms)
        fprintf(stderr, "no rdpipe answered there within %g s (--timeout): try %s %s true",
                end->silent_ms / 1000.0, end->settings->ssh, end->host);
    else if (status < 0)
        fprintf(stderr, "the session ended before rdpipe started there");
    else if (status == 127)
        fprintf(stderr, "no rdpipe found there: install it or give --remote-path");
    else if (status == EXIT_USAGE)
        fprintf(stderr, "rdpipe there is older, without agent version %d: install the same "
                        "release on both machines", AGENT_VERSION);
    else
        fprintf(stderr, "no session: ssh ended with status %d", status);
    if (login.length)
        fprintf(stderr, "; the login shell printed \"%s\"%s", login.data,
                status > 0 ? "" : ": its start-up files, such as .bashrc, must be silent and ask "
                                  "nothing without a terminal");
    fputs("\n", stderr);
    bytes_close(&login);
}

static void print_failure(const struct pipe_run *run, const struct pipe_end *end)
{
    print_name(run, end);
    if (end->note)
        fprintf(stderr, "%s\n", end->note);
    else if (end->host && !end->greeted)
        print_no_session(end);
    else if (end->silent_ms)
        fprintf(stderr, "nothing heard from there for %g s: is the machine or its network down? "
                        "(--timeout)\n", end->silent_ms / 1000.0);
    else if (end->status->command_status > 0)
        fprintf(stderr, "exit status %d\n", end->status->command_status);
    else
        fprintf(stderr, "did not go through, status %d\n", end->status->status);
}

static int conclude(const struct pipe_run *run)
{
    size_t which = 0;
    exit_status_settle(run->statuses, run->count);
    int status = exit_status(run->statuses, run->count, &which);
    for (size_t i = 0; i < run->count && status && !run->caught; i++) {
        const struct pipe_end *end = &run->ends[i];
        int own = end->status->command_status;
        if (own > 0 && own <= run->settings->says_why)
            continue;
        if (i == which || own > 0 || end->note || end->silent_ms)
            print_failure(run, end);
    }
    return run->caught ? 128 + run->caught : status;
}

static void close_ends(struct pipe_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        pipe_end_stop(&run->ends[i]);
    for (size_t i = 0; i < run->count; i++)
        if (pipe_end_close(&run->ends[i]) < 0) {
            print_name(run, &run->ends[i]);
            fprintf(stderr, "could not be ended\n");
        }
}

static void pipe_run_close(struct pipe_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        free(run->ends[i].announcement);
        free(run->ends[i].note);
        bytes_close(&run->ends[i].login);
    }
    free(run->statuses);
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
    struct pollfd *polled = allocated(calloc(2 * count + 5, sizeof *polled));
    if ((run.signal_fd = signals_watch()) >= 0 && lay_out(&run, segments, count) == 0) {
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
