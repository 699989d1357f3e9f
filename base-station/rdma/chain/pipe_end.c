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
#include "leash_work.h"
#include "pipe.h"
#include "quote.h"
#include "trouble.h"

enum {
    READ_BYTES = 1 << 16,
    NOISE_BYTES = 1 << 18, /* what a login shell may say before the leash speaks */
    TERM_MS = 2000, /* from SIGTERM to SIGKILL, and from there to giving up */
    KILL_MS = 1000,
};

static void add_hex_words(struct bytes *into, const char *verb, const struct words *words)
{
    bytes_text(into, verb);
    for (size_t i = 0; i < words->count; i++) {
        bytes_text(into, " ");
        hex_add(into, words->word[i], strlen(words->word[i]));
    }
    bytes_text(into, "\n");
}

static void add_hex_word(struct bytes *into, const char *verb, char *word)
{
    add_hex_words(into, verb, &(const struct words){&word, 1});
}

/* `in --hop=HOST, hop N`: with -v, each line of that tool says where it is. */
static void add_hop(struct bytes *into, const char *verb, const struct pipe_end *end, int hop)
{
    char text[300];
    snprintf(text, sizeof text, "--hop=%s, hop %d", end->host ? end->host : "here", hop);
    add_hex_word(into, verb, text);
}

static void queue_first(struct pipe_end *end, const struct pipe_settings *settings)
{
    static const struct words none;
    struct bytes *into = &end->control;
    bool file = end->middle == LEASH_WRITE || end->middle == LEASH_APPEND;
    bytes_format(into, "leash 4 %s %s\n", end->has_in ? end->key_in : "-",
                 end->has_out ? end->key_out : "-");
    if (settings->in_options.count)
        add_hex_words(into, "in", &settings->in_options);
    if (settings->sync && file && end->has_in)
        add_hex_word(into, "in", "--sync");
    if (settings->out_options.count)
        add_hex_words(into, "out", &settings->out_options);
    if (end->has_in)
        add_hop(into, "in", end, end->hop);
    if (end->has_out)
        add_hop(into, "out", end, end->hop + 1);
    if (end->typed || (settings->back && end->middle == LEASH_EXEC))
        bytes_text(into, "back\n");
    add_hex_words(into, end->shell ? "shell" : leash_middles[end->middle],
                  end->words ? end->words : &none);
}

/* exec [DIR/]rdrecv --leash, for whatever shell logs in there */
static void remote_command(struct bytes *into, const char *folder)
{
    bytes_text(into, "exec ");
    if (folder)
        quote_word(into, folder, true);
    bytes_text(into, folder ? "/rdrecv --leash" : "rdrecv --leash");
}

static void become_ssh(const struct pipe_end *end, const struct pipe_settings *settings,
                       struct handed handed[2])
{
    struct bytes remote = {0};
    char *line = text_of("exec %s \"$@\"", settings->ssh);
    remote_command(&remote, settings->remote_path);
    become((char *[]){"/bin/sh", "-c", line, "ssh", (char *)end->host, remote.data, NULL},
           handed, 2);
}

static void child(const struct pipe_end *end, const struct pipe_settings *settings,
                  struct handed handed[4])
{
    char self[PATH_MAX];
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (end->host)
        become_ssh(end, settings, handed);
    if (leash_work_self(self) < 0)
        _exit(126);
    setpgid(0, 0); /* Ctrl-C is rdpipe's; the leash hears of it from there */
    become((char *[]){self, "--leash", "3", "4", NULL}, handed, 4);
}

int pipe_end_open(struct pipe_end *end, const struct pipe_settings *settings,
                  int stdin_fd, int stdout_fd)
{
    int control[2], answers[2];
    queue_first(end, settings);
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
    end->pid = fork();
    if (end->pid == 0)
        child(end, settings, (struct handed[]){{control[0], 0}, {answers[1], 1},
                                               {stdin_fd, 3}, {stdout_fd, 4}});
    shut(&control[0]);
    shut(&answers[1]);
    if (end->pid > 0)
        return 0;
    end->pid = 0;
    return -1;
}

void pipe_end_run(struct pipe_end *end, const char *port, const char *transports,
                  const char *addresses)
{
    end->running = true;
    if (port)
        bytes_format(&end->control, "to %s %s %s\n", port, transports, addresses);
    else
        bytes_text(&end->control, "run\n");
}

void pipe_end_try(struct pipe_end *end, enum leash_way way, const char *token,
                  const char *ports)
{
    end->way = way;
    if (way == LEASH_BACK)
        bytes_format(&end->control, "run back %s %s\n", token, ports);
    else
        bytes_text(&end->control, way == LEASH_STRAIGHT ? "run\n" : "run ssh\n");
}

int pipe_end_dial(struct pipe_end *end, const char *token, const char *awaits,
                  const char *addresses)
{
    char *port = leash_field(awaits, "port");
    bool known = port && addresses;
    if (known)
        bytes_format(&end->control, "dial %s %s %s\n", token, port, addresses);
    free(port);
    return known ? 0 : -1;
}

int pipe_end_tunnel(struct pipe_end *end)
{
    char *port = leash_field(end->announcement, "port");
    if (!port)
        return -1;
    bytes_format(&end->control, "tunnel %s\n", port);
    free(port);
    return 0;
}

void pipe_end_type(struct pipe_end *end)
{
    char text[4096];
    ssize_t got = read(STDIN_FILENO, text, end->may < sizeof text ? end->may : sizeof text);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    size_t length = got > 0 ? (size_t)got : 0;
    bytes_format(&end->control, "flow back %zu\n", length);
    bytes_add(&end->control, text, length);
    end->may -= length;
    end->type_over = !length;
}

void pipe_end_beat(struct pipe_end *end)
{
    if (end->control_fd >= 0 && !end->control.length)
        bytes_text(&end->control, "beat\n");
}

void pipe_end_flush(struct pipe_end *end)
{
    while (end->control_fd >= 0 && end->control.length) {
        ssize_t sent = write(end->control_fd, end->control.data, end->control.length);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            pipe_end_let_go(end); /* its reader left; what it says last is still read */
        if (sent <= 0)
            return;
        bytes_drop(&end->control, (size_t)sent);
    }
}

static int number_in(const char *text)
{
    char *rest;
    long number = strtol(text, &rest, 10);
    return *text && !*rest && number >= 0 && number <= 255 ? (int)number : 255;
}

static void keep(char **into, const char *text)
{
    free(*into);
    *into = allocated(strdup(text));
}

static void take(struct pipe_end *end, char *line)
{
    if (!end->greeted) {
        end->greeted = strcmp(line, LEASH_GREETING) == 0;
        if (!end->greeted && !strncmp(line, LEASH_GREETING, LEASH_GREETING_NAME))
            keep(&end->note, "another version of rdpipe is there: install the same "
                             "release on both");
        return;
    }
    char *rest = line;
    const char *verb = strsep(&rest, " "), *text = rest ? rest : "";
    if (strcmp(verb, "announce") == 0 && !end->announcement)
        keep(&end->announcement, text);
    else if (strcmp(verb, "await") == 0 && !end->awaits)
        keep(&end->awaits, text);
    else if (strcmp(verb, "reached") == 0)
        end->reached = true;
    else if (strcmp(verb, "unreached") == 0)
        *(strcmp(text, "in") == 0 ? &end->unreached_in : &end->unreached_out) = true;
    else if (strcmp(verb, "status") == 0)
        end->command_status = number_in(text);
    else if (strcmp(verb, "note") == 0)
        keep(&end->note, text);
    else if (strcmp(verb, "exit") == 0)
        end->status = number_in(text);
}

/* A frame of the hop goes to its other end. */
static int pass_on(struct pipe_end *end, const struct leash_said *frame)
{
    static const enum leash_hop there[] = {LEASH_HOP_OUT, LEASH_HOP_IN, LEASH_HOP_BACK};
    bool out = frame->hop == LEASH_HOP_BACK ? !end->has_in : frame->hop == LEASH_HOP_OUT;
    struct pipe_end *to = out ? end + 1 : end - 1;
    if (end->typed && frame->hop == LEASH_HOP_BACK) {
        end->may += frame->took ? frame->length : 0;
        return 0;
    }
    if (!(out ? end->has_out : end->has_in) || to->control.length > 2 * LEASH_WINDOW)
        return -1;
    if (to->control_fd < 0)
        return 0;
    bytes_format(&to->control, "%s %s %zu\n", frame->took ? "took" : "flow",
                 leash_hops[there[frame->hop]], frame->length);
    bytes_add(&to->control, frame->bytes, frame->took ? 0 : frame->length);
    return 0;
}

void pipe_end_listen(struct pipe_end *end, int64_t now_ms)
{
    ssize_t got = bytes_read(&end->answers, end->answer_fd, READ_BYTES);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    end->heard_ms = got > 0 ? now_ms : end->heard_ms;
    struct leash_said said;
    while (leash_next(&end->answers, &said)) {
        if (said.line)
            take(end, said.line);
        else if (!end->greeted || pass_on(end, &said) < 0)
            got = -1;
        leash_heard(&end->answers, &said);
    }
    end->done = got <= 0 || end->answers.length > NOISE_BYTES;
}

void pipe_end_let_go(struct pipe_end *end)
{
    shut(&end->control_fd);
    end->control.length = 0;
}

/* Has it ended, or does it within so many ms? SIGCHLD is blocked here. */
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
    pipe_end_let_go(end);
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
        if (end->status < 0 && WIFEXITED(state))
            end->status = WEXITSTATUS(state);
        end->pid = 0;
    }
    bytes_close(&end->answers);
    bytes_close(&end->control);
    explicit_bzero(end->key_in, sizeof end->key_in);
    explicit_bzero(end->key_out, sizeof end->key_out);
    return result;
}
