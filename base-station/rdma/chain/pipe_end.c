/* One end of rdpipe's chain: see pipe_end.h. */
#include "pipe_end.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "descriptors.h"
#include "pipe.h"
#include "error.h"

enum {
    READ_BYTES = 1 << 16,
    LOGIN_BYTES = 1 << 20, /* limit on a login shell's output before the greeting */
    LOGIN_SHOWN = 200,
    LOGIN_MS = 180000, /* above the 120 s of sshd for a password, and ssh's own to connect */
    FRAME_BYTES = 1 << 18,
    TERM_MS = 2000, /* from SIGTERM to SIGKILL, and from there to giving up */
    KILL_MS = 1000,
};

static void become_ssh(const struct pipe_end *end, struct handed handed[2])
{
    const char *folder = end->settings->remote_path;
    struct bytes remote = {0}; /* for any login shell */
    char *line = text_of("exec %s \"$@\"", end->settings->ssh);
    bytes_text(&remote, "exec ");
    if (folder)
        quote_word(&remote, folder, true);
    bytes_format(&remote, "%srdpipe --agent %d", folder ? "/" : "", end->settings->silence_ms);
    become((char *[]){"/bin/sh", "-c", line, "ssh", (char *)end->host, remote.data, NULL},
           handed, 2);
}

static void child(const struct pipe_end *end, struct handed handed[4])
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (end->host)
        become_ssh(end, handed);
    if (end->work.middle != AGENT_PASS) /* only the foreground may read the terminal */
        setpgid(0, 0); /* rdpipe handles Ctrl-C and tells the agent */
    become((char *[]){agent_work_tool("rdpipe"), "--agent",
                      text_of("%d", end->settings->silence_ms), "3", "4", NULL}, handed, 4);
}

int pipe_end_open(struct pipe_end *end, int stdin_fd, int stdout_fd)
{
    int control[2], answers[2];
    if (pipe2(control, O_CLOEXEC) < 0)
        return -1;
    if (pipe2(answers, O_CLOEXEC) < 0) {
        close(control[0]);
        close(control[1]);
        return -1;
    }
    end->control_fd = control[1];
    end->answer_fd = answers[0];
    fcntl(control[1], F_SETFL, O_NONBLOCK);
    fcntl(answers[0], F_SETFL, O_NONBLOCK);
    end->opened_ms = end->received_ms = now_ms();
    end->pid = fork();
    if (end->pid == 0)
        child(end, (struct handed[]){{control[0], 0}, {answers[1], 1},
                                     {stdin_fd, 3}, {stdout_fd, 4}});
    shut(&control[0]);
    shut(&answers[1]);
    if (end->pid > 0)
        return 0;
    end->pid = 0;
    return -1;
}

/* Return the address of a host given by --via HOST=ADDRESS, or NULL. The caller frees it. */
static char *via_address(const struct pipe_settings *settings, const char *host)
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

/* Return the addresses at which an end can reach the next one. */
static char *next_addresses(const struct pipe_end *end)
{
    const struct pipe_end *next = end + 1;
    char *given = via_address(end->settings, next->host);
    char *announced = given ? given : agent_field(next->announcement, "addresses");
    if (given || !announced || !same_text(end->host, next->host))
        return announced;
    char *nearest = text_of("127.0.0.1,%s", announced);
    free(announced);
    return nearest;
}

static void run_by(struct pipe_end *end, enum agent_route route)
{
    end->work.route = route;
    end->running = true;
    agent_work_add(&end->control, &end->work);
}

static void run_via_ssh(struct pipe_end *end)
{
    fprintf(stderr, "%s: from %s to %s: the data goes through the SSH session, which is slower%s\n",
            end->settings->program, end->host ? end->host : "here",
            end[1].host ? end[1].host : "here",
            end->settings->route == AGENT_THROUGH_SSH
                ? "" : " (no port is reached: --port names those that a firewall lets in)");
    run_by(end, AGENT_THROUGH_SSH);
    agent_frame_add_text(&end[1].control, AGENT_VIA_SSH, AGENT_HOP_IN, NULL);
}

void pipe_end_run_ahead(struct pipe_end *end)
{
    if (end->control_fd < 0 || end->ahead || end->running || !agent_work_ahead(&end->work))
        return;
    end->ahead = true;
    agent_work_add(&end->control, &end->work);
}

void pipe_end_run(struct pipe_end *end)
{
    if (!*end->work.key_out) {
        run_by(end, AGENT_SURE);
        return;
    }
    char *transports = agent_field(end[1].announcement, "transports");
    bool sure = same_text(end->host, end[1].host) || same_text(transports, "rdma");
    free(transports);
    end->work.port = end->port = agent_field(end[1].announcement, "port");
    end->work.addresses = end->addresses = next_addresses(end);
    if (!end->port || !end->addresses)
        pipe_end_release(end);
    else if (!sure && end->settings->route == AGENT_THROUGH_SSH)
        run_via_ssh(end);
    else
        run_by(end, sure ? AGENT_SURE : AGENT_STRAIGHT);
}

void pipe_end_unreached(struct pipe_end *end)
{
    if (*end->work.key_out && end->work.route == AGENT_STRAIGHT)
        run_via_ssh(end);
}

void pipe_end_beat(struct pipe_end *end)
{
    if (end->control_fd >= 0 && !end->control.length)
        agent_frame_add_text(&end->control, AGENT_BEAT, AGENT_HOP_BACK, NULL);
}

void pipe_end_flush(struct pipe_end *end)
{
    while (end->control_fd >= 0 && end->control.length) {
        ssize_t sent = write(end->control_fd, end->control.data, end->control.length);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            pipe_end_release(end); /* the reader left; its last output is still read */
        if (sent <= 0)
            return;
        bytes_drop(&end->control, (size_t)sent);
    }
}

void pipe_end_read(struct pipe_end *end, int64_t now_ms)
{
    ssize_t got = bytes_read(&end->answers, end->answer_fd, READ_BYTES);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    end->received_ms = got > 0 ? now_ms : end->received_ms;
    end->done = got <= 0;
}

/* Return the version in a greeting at the end of the line, or 0. The login shell may have printed
 * any bytes before it, and no newline. */
static int greeting_version(const char *line, size_t length)
{
    size_t digits = 0, name = strlen(AGENT_GREETING);
    while (digits < length && line[length - digits - 1] >= '0' && line[length - digits - 1] <= '9')
        digits++;
    const char *number = line + length - digits;
    bool greets = length >= name + digits && memcmp(number - name, AGENT_GREETING, name) == 0;
    return greets ? atoi(number) : 0;
}

/* Move the login shell's output out of the answers; keep the last of it for a message. */
static void take_login(struct pipe_end *end, size_t length)
{
    struct bytes *login = &end->login;
    end->login_bytes += length;
    bytes_add(login, end->answers.data, length);
    bytes_drop(login, login->length > LOGIN_SHOWN ? login->length - LOGIN_SHOWN : 0);
    bytes_drop(&end->answers, length);
}

static void await_greeting(struct pipe_end *end)
{
    const char *line = end->answers.data, *newline;
    size_t taken = 0;
    while (!end->greeted && taken < end->answers.length &&
           (newline = memchr(line + taken, '\n', end->answers.length - taken))) {
        int version = greeting_version(line + taken, (size_t)(newline - line) - taken);
        end->greeted = version == AGENT_VERSION;
        if (version && !end->greeted && !end->note)
            end->note = text_of("rdpipe has agent version %d there and %d here: install the "
                                "same release on both machines", version, AGENT_VERSION);
        taken = (size_t)(newline - line) + 1;
    }
    take_login(end, taken);
}

bool pipe_end_next(struct pipe_end *end, struct agent_frame *frame)
{
    await_greeting(end);
    int next = end->greeted ? agent_frame_next(&end->answers, frame) : 0;
    size_t pending = end->answers.length + (end->greeted ? 0 : end->login_bytes);
    end->given_up |= next < 0 ||
                     (next == 0 && pending > (end->greeted ? FRAME_BYTES : LOGIN_BYTES));
    end->done |= end->given_up;
    return next > 0;
}

void pipe_end_mind_time(struct pipe_end *end, bool patient, int64_t now_ms)
{
    int limit_ms = end->settings->silence_ms;
    bool starts = end->host && !end->greeted, logged_in = end->login_bytes || end->answers.length;
    int start_ms = starts && limit_ms < LOGIN_MS ? LOGIN_MS : limit_ms;
    bool waits = starts && patient && !logged_in;
    if (!end->pid || end->done || !limit_ms)
        return;
    if (!waits && now_ms - end->received_ms > limit_ms)
        end->silent_ms = limit_ms;
    else if (starts && now_ms - end->opened_ms > start_ms)
        end->silent_ms = start_ms;
    else
        return;
    end->given_up = end->done = true;
    kill(end->pid, starts ? SIGTERM : SIGKILL); /* on SIGTERM ssh restores the terminal's echo */
    pipe_end_release(end);
}

void pipe_end_pass_on(struct pipe_end *end, const struct agent_frame *frame)
{
    static const enum agent_hop there[] = {AGENT_HOP_OUT, AGENT_HOP_IN, AGENT_HOP_BACK};
    bool back = frame->hop == AGENT_HOP_BACK;
    bool out = back ? !*end->work.key_in : frame->hop == AGENT_HOP_OUT;
    struct pipe_end *to = out ? end + 1 : end - 1;
    if (!*(out ? end->work.key_out : end->work.key_in) ||
             to->control.length > 2 * AGENT_WINDOW)
        end->done = true;
    else if (to->control_fd >= 0)
        agent_frame_add(&to->control, frame->verb, there[frame->hop], frame->body,
                    frame->length);
}

void pipe_end_release(struct pipe_end *end)
{
    shut(&end->control_fd);
    bytes_close(&end->control);
}

/* True if the process has ended or ends within `within_ms`. SIGCHLD is blocked here. */
static bool ended(pid_t pid, int *state, int within_ms)
{
    const struct timespec nap = {0, 20 * 1000000};
    int64_t end_ms = now_ms() + within_ms;
    sigset_t child_set;
    pid_t gone;
    sigemptyset(&child_set);
    sigaddset(&child_set, SIGCHLD);
    while ((gone = waitpid(pid, state, WNOHANG)) == 0 && now_ms() < end_ms)
        sigtimedwait(&child_set, NULL, &nap);
    return gone != 0;
}

void pipe_end_stop(struct pipe_end *end)
{
    pipe_end_release(end);
    if (end->pid > 0 && !end->done)
        kill(end->pid, SIGTERM);
}

int pipe_end_close(struct pipe_end *end)
{
    int result = 0, state = SIGKILL;
    shut(&end->answer_fd);
    if (end->pid > 0) {
        if (!ended(end->pid, &state, TERM_MS)) {
            kill(end->pid, SIGKILL);
            result = ended(end->pid, &state, KILL_MS) ? 0 : -1;
        }
        int status = WIFEXITED(state) && !end->given_up ? WEXITSTATUS(state) : -1;
        if (end->status->status < 0 && (status || end->greeted)) /* a login file may say "exit" */
            end->status->status = status;
        end->pid = 0;
    }
    take_login(end, end->greeted ? 0 : end->answers.length);
    bytes_close(&end->answers);
    bytes_close(&end->control);
    free(end->addresses);
    free(end->port);
    words_close(&end->work.out);
    words_close(&end->work.in);
    explicit_bzero(end->key_out, sizeof end->key_out);
    return result;
}

/* --- exit status of a chain --- */

enum { READER_GONE = 128 + 13 }; /* SIGPIPE */

static bool content(const struct end_status *end)
{
    if (!end->command)
        return end->status == 0;
    return end->command_status == 0 || end->command_status == READER_GONE;
}

void exit_status_settle(struct end_status *ends, size_t count)
{
    for (size_t i = count - 1; i-- > 0;)
        if (ends[i].command && ends[i].command_status < 0 && ends[i].status > 0 &&
            content(&ends[i + 1]))
            ends[i].command_status = READER_GONE;
}

bool exit_status_failed(const struct end_status *ends, size_t count, size_t which)
{
    const struct end_status *end = &ends[which];
    if (end->command_status > 0)
        return true;
    if (end->status == 0)
        return false;
    return which + 1 < count ? !content(&ends[which + 1])
                             : !end->command || end->command_status != 0;
}

int exit_status(const struct end_status *ends, size_t count, size_t *which)
{
    int status = 0;
    for (size_t i = 0; i < count; i++) {
        bool file_failed = !ends[i].command && i + 1 == count && ends[i].order;
        int own = ends[i].command_status;
        if (own > 0 || (status == READER_GONE && file_failed)) {
            status = own > 0 ? own : ends[i].status;
            *which = i;
        }
    }
    if (status)
        return status;
    int first = 0;
    for (size_t i = 0; i < count; i++)
        if (exit_status_failed(ends, count, i) &&
            (!status || (ends[i].order && (!first || ends[i].order < first)))) {
            status = ends[i].status > 0 ? ends[i].status : 1;
            first = ends[i].order;
            *which = i;
        }
    return status;
}
