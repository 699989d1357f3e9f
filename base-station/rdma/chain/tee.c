/* Several targets: see tee.h. */
#include "tee.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descriptors.h"
#include "quote.h"
#include "segment.h"
#include "signals.h"

enum { WINDOW = 64 << 20, PIECE = 1 << 20 };

struct tee {
    struct tee_target *targets;
    size_t count;
    uint8_t *window;
    uint64_t got;
    int from;    /* input; -1: end seen */
    pid_t source; /* 0: input is this process's stdin */
    bool waits;
    const struct pipe_settings *settings;
};

size_t tee_split(struct words *into, const char *text, bool shell)
{
    const char *from = text;
    char quote = 0;
    for (const char *at = text; *at; at++) {
        if (shell && *at == '\\' && at[1] && quote != '\'')
            at++;
        else if (shell && (*at == '\'' || *at == '"') && (!quote || quote == *at))
            quote = quote ? 0 : *at;
        else if (*at == '|' && !quote && segment_host_length(at + 1) && at > from) {
            char *one = text_of("%.*s", (int)(at - from), from);
            words_add(into, one);
            free(one);
            from = at + 1;
        }
    }
    words_add(into, from);
    return into->count;
}

pid_t tee_fork(void)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    return pid;
}

void tee_exit(int status)
{
    fflush(NULL);
    _exit(status);
}

/*
 * Drop a target. The pipe into a killed target stays open until this process ends: the target would
 * otherwise read an end of file and pass the truncated input on as complete.
 */
static void let_go(struct tee_target *target, bool killed)
{
    if (killed && target->pid > 0)
        kill(target->pid, SIGTERM);
    else if (target->fd >= 0)
        close(target->fd);
    target->fd = -1;
}

static void tell(const char *program, const struct tee_target *target)
{
    struct bytes line = {0};
    bytes_format(&line, "%s: ", program);
    quote_shown(&line, target->label);
    if (target->slow)
        fprintf(stderr, "%s: was let go: %d MiB behind the others (--wait keeps it)\n",
                line.data, WINDOW >> 20);
    else if (target->status)
        fprintf(stderr, "%s: failed, status %d\n", line.data, target->status);
    else
        fprintf(stderr, "%s: all of it arrived\n", line.data);
    bytes_close(&line);
}

void tee_tell(const char *program, const struct tee_target *targets, size_t count)
{
    bool failed = false;
    for (size_t i = 0; i < count; i++)
        failed |= targets[i].status;
    for (size_t i = 0; i < count && failed; i++)
        tell(program, &targets[i]);
}

int tee_wait(struct tee_target *targets, size_t count)
{
    struct pollfd polled = {signals_watch(), POLLIN, 0};
    int worst = 0, caught = 0;
    for (size_t left = count; left;) {
        left = 0;
        for (size_t i = 0; i < count; i++) {
            int state;
            if (targets[i].pid <= 0)
                continue;
            if (!waitpid(targets[i].pid, &state, WNOHANG)) {
                left++;
                continue;
            }
            targets[i].pid = 0;
            targets[i].status = targets[i].slow ? 1 : status_of(state);
        }
        int number = signals_number(polled.fd);
        caught = number ? number : caught;
        for (size_t i = 0; i < count && number; i++)
            let_go(&targets[i], true);
        if (left)
            poll(&polled, 1, 200);
    }
    close(polled.fd);
    for (size_t i = 0; i < count; i++)
        worst = targets[i].status > worst ? targets[i].status : worst;
    return caught ? 128 + caught : worst;
}

/* Return the open target that has received the least, or NULL if all are closed. */
static struct tee_target *slowest(const struct tee *tee)
{
    struct tee_target *least = NULL;
    for (size_t i = 0; i < tee->count; i++)
        if (tee->targets[i].fd >= 0 && (!least || tee->targets[i].sent < least->sent))
            least = &tee->targets[i];
    return least;
}

/* Drop the slowest target if it keeps the window full while another target is idle. */
static void mind_slowest(struct tee *tee)
{
    struct tee_target *last = slowest(tee);
    bool full = last && tee->got - last->sent == WINDOW, idle = false;
    for (size_t i = 0; i < tee->count; i++)
        idle |= tee->targets[i].fd >= 0 && tee->targets[i].sent == tee->got;
    if (!full || !idle || tee->waits || tee->from < 0)
        return;
    last->slow = true;
    let_go(last, true);
}

static void take(struct tee *tee, uint64_t room)
{
    size_t at = (size_t)(tee->got % WINDOW), most = WINDOW - at;
    most = room < most ? (size_t)room : most;
    ssize_t got = read(tee->from, tee->window + at, most < PIECE ? most : PIECE);
    if (got > 0)
        tee->got += (uint64_t)got;
    else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
        close(tee->from);
        tee->from = -1;
    }
}

static void give(struct tee *tee, struct tee_target *target)
{
    size_t at = (size_t)(target->sent % WINDOW), most = WINDOW - at;
    uint64_t has = tee->got - target->sent;
    ssize_t sent = write(target->fd, tee->window + at, has < most ? (size_t)has : most);
    if (sent > 0)
        target->sent += (uint64_t)sent;
    else if (errno != EAGAIN && errno != EINTR)
        let_go(target, false); /* it exited; its status tells the reason */
}

/* Forward all input. Return 0, or the number of a received signal. */
static int pass_on(struct tee *tee, struct pollfd *polled, int signals)
{
    for (;;) {
        mind_slowest(tee);
        struct tee_target *last = slowest(tee);
        if (!last || (tee->from < 0 && last->sent == tee->got))
            return 0;
        uint64_t room = WINDOW - (tee->got - last->sent);
        for (size_t i = 0; i < tee->count; i++) {
            struct tee_target *target = &tee->targets[i];
            short events = target->sent < tee->got ? POLLOUT : 0; /* errors are always reported */
            polled[i] = (struct pollfd){target->fd, events, 0};
        }
        polled[tee->count] = (struct pollfd){room ? tee->from : -1, POLLIN, 0};
        polled[tee->count + 1] = (struct pollfd){signals, POLLIN, 0};
        poll(polled, tee->count + 2, -1);
        int number = signals_number(signals);
        if (number)
            return number;
        for (size_t i = 0; i < tee->count; i++)
            if (polled[i].revents & POLLOUT)
                give(tee, &tee->targets[i]);
            else if (polled[i].revents)
                let_go(&tee->targets[i], false);
        if (polled[tee->count].revents)
            take(tee, room);
    }
}

/*
 * Run a chain in its own process with one end of a pipe; store the other end in `*fd`. The child
 * closes the pipes of the other chains, because an inherited writing end would keep them from
 * ending.
 */
static pid_t start(const struct tee *tee, const struct pipe_segment *segments, size_t count,
                   int its, int *fd)
{
    int pair[2], caught, ours = its == STDIN_FILENO;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = tee_fork();
    if (pid == 0) {
        if (dup2(pair[!ours], its) < 0)
            tee_exit(1);
        close_range(STDERR_FILENO + 1, ~0U, 0);
        tee_exit(pipe_run(tee->settings, segments, count, &caught));
    }
    close(pair[!ours]);
    fcntl(pair[ours], F_SETFL, O_NONBLOCK);
    *fd = pair[ours];
    return pid;
}

static int start_all(struct tee *tee, const struct pipe_segment *before,
                     size_t before_count, const struct pipe_segment *targets)
{
    if (before_count)
        tee->source = start(tee, before, before_count, STDOUT_FILENO, &tee->from);
    for (size_t i = 0; i < tee->count && tee->source >= 0; i++) {
        struct tee_target *target = &tee->targets[i];
        target->label = targets[i].label;
        target->pid = start(tee, &targets[i], 1, STDIN_FILENO, &target->fd);
        if (target->pid < 0)
            return -1;
    }
    return tee->source < 0 ? -1 : 0;
}

/* Close the targets' input normally only if the input was complete. */
static int conclude(struct tee *tee, int caught)
{
    struct tee_target source = {.pid = tee->source, .fd = -1};
    bool whole = tee->from < 0;
    if (!whole)
        let_go(&source, true);
    int status = tee->source ? tee_wait(&source, 1) : 0;
    status = caught ? 128 + caught : whole ? status : 0;
    if (tee->from > STDERR_FILENO)
        close(tee->from);
    for (size_t i = 0; i < tee->count; i++)
        let_go(&tee->targets[i], status);
    int worst = tee_wait(tee->targets, tee->count);
    if (!status)
        tee_tell(tee->settings->program, tee->targets, tee->count);
    return status ? status : worst;
}

int tee_run(const struct pipe_settings *settings, const struct pipe_segment *before,
            size_t before_count, const struct pipe_segment *targets, size_t count,
            bool waits)
{
    struct tee tee = {.targets = allocated(calloc(count, sizeof *tee.targets)),
                      .count = count, .window = allocated(malloc(WINDOW)),
                      .from = STDIN_FILENO, .waits = waits, .settings = settings};
    struct pollfd *polled = allocated(calloc(count + 2, sizeof *polled));
    int status = 1, signals = -1;
    for (size_t i = 0; i < count; i++)
        tee.targets[i].fd = -1;
    if (start_all(&tee, before, before_count, targets) == 0 &&
        (signals = signals_watch()) >= 0) {
        status = conclude(&tee, pass_on(&tee, polled, signals));
    } else {
        fprintf(stderr, "%s: cannot start: %m\n", settings->program);
        conclude(&tee, SIGTERM);
    }
    shut(&signals);
    free(polled);
    free(tee.window);
    free(tee.targets);
    return status;
}
