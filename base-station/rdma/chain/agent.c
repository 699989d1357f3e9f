/* Remote end of an SSH session: run one segment of a pipe, and end all of it when rdpipe falls
 * silent. The protocol is in agent_protocol.h.
 *
 *   guard     only waits: if the agent below it is killed, it ends the other processes
 *   `- agent  reads stdin, sends beats, runs the segment
 *      `- rdrecv -- rdsend -- the user's command */
#include "agent_protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "descriptors.h"
#include "reap.h"
#include "signals.h"
#include "error.h"
#include "route.h"

enum { GRACE_MS = 500, READ_BYTES = 1 << 16, OWN_FDS = 3 };

struct agent {
    struct agent_work work;
    struct route route;
    struct bytes input;
    int stdin_fd, stdout_fd; /* for the segment; -1 = /dev/null; not owned */
    int lines_fd;  /* announcements of rdrecv and the command's status */
    int signal_fd;
    pid_t root;    /* the outermost tool; 0 before it started */
    int silence_ms; /* 0 = no limit */
    int64_t received_ms, beat_ms;
    int status; /* of the outermost tool, -1 while it runs */
    bool over;  /* rdpipe left, or needs no more */
};

static void send_text(enum agent_verb verb, enum agent_hop hop, const char *text)
{
    agent_send(verb, hop, text, text ? strlen(text) + 1 : 0);
}

static void send_status(enum agent_verb verb, int status)
{
    char *text = text_of("%d", status);
    send_text(verb, AGENT_HOP_BACK, text);
    free(text);
}

static void fail(struct agent *agent, const char *what, const char *why)
{
    char *note = text_of("%s: %s", what, why);
    send_text(AGENT_NOTE, AGENT_HOP_BACK, note);
    free(note);
    agent->status = agent->status < 0 ? 1 : agent->status;
    agent->over = true;
}

/* Pass a key to a tool as hex digits in a pipe that is large enough to hold them all. */
static int key_pipe(const char *key)
{
    int ends[2];
    if (!*key || pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    if (write(ends[1], key, AGENT_KEY) != AGENT_KEY)
        shut(&ends[0]);
    close(ends[1]);
    return ends[0];
}

/* Send the address, or the connection, to the sender. */
static int send_target(struct agent *agent)
{
    struct route *route = &agent->route;
    char *text = text_of("%s %s", agent->work.port, agent->work.addresses);
    int sent = fd_send(route->where_fd, route->socket_fd, text);
    free(text);
    shut(&route->socket_fd);
    shut(&route->where_fd);
    return sent;
}

/* Start the segment, in its own process group unless it only passes on a stream of rdpipe's own,
 * which may be the terminal. Return 0, or -1 with errno. */
static int spawn(struct agent *agent)
{
    const struct agent_work *work = &agent->work;
    struct route *route = &agent->route;
    struct words words;
    int lines[2], peers[2] = {-1, -1}, where[2] = {-1, -1};
    bool in = *work->key_in, out = *work->key_out;
    bool group = work->middle != AGENT_PASS;
    if (pipe2(lines, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    agent->lines_fd = lines[0];
    if ((in && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, peers) < 0) ||
        (out && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, where) < 0)) {
        close(lines[1]);
        return -1;
    }
    route->peers_fd = peers[1];
    route->where_fd = where[1];
    enum { OURS = 2, COMMANDS = 3, ALL = 9 }; /* the others are for the tools only */
    struct handed handed[ALL] = {
        {agent->stdin_fd, STDIN_FILENO},
        {agent->stdout_fd, STDOUT_FILENO},
        {route->back_fd, work->back && !in ? STDIN_FILENO : AGENT_BACK_FD},
        {key_pipe(work->key_in), AGENT_KEY_IN_FD},
        {key_pipe(work->key_out), AGENT_KEY_OUT_FD},
        {peers[0], AGENT_PEERS_FD},
        {where[0], AGENT_WHERE_FD},
        {lines[1], AGENT_STATUS_FD},
        {dup(lines[1]), AGENT_ANNOUNCE_FD},
    };
    /* A sender whose command must not start before its address is known finds it at once. */
    if (out && !agent_work_ahead(work))
        send_target(agent);
    agent_work_open(&words, work);
    pid_t pid = fork();
    if (pid == 0) {
        if (group)
            setpgid(0, 0);
        become(words.word, handed, agent_work_tools(work) ? ALL : COMMANDS);
    }
    words_close(&words);
    route->back_fd = -1; /* closed with the others */
    for (size_t i = OURS; i < ALL; i++)
        shut(&handed[i].from);
    if (pid < 0)
        return -1;
    if (group)
        setpgid(pid, pid);
    agent->root = pid;
    return 0;
}

/* Start the segment, or send the address to a source that already runs. */
static void start(struct agent *agent)
{
    const struct agent_work *work = &agent->work;
    bool through = work->route == AGENT_THROUGH_SSH, ready = agent_work_ahead(work);
    send_text(AGENT_BEAT, AGENT_HOP_BACK, NULL); /* the next line may take seconds */
    ready = ready || route_out(&agent->route, work, STDIN_FILENO) == 0;
    if (!ready && !through)
        send_text(AGENT_UNREACHED, AGENT_HOP_OUT, NULL);
    else if (!ready || (agent->root ? send_target(agent) : spawn(agent)) < 0)
        fail(agent, "cannot start", strerror(errno));
}

static bool take_run(struct agent *agent, const struct agent_frame *frame)
{
    bool runs = agent->root;
    if ((runs && agent->route.where_fd < 0) || agent_work_take(&agent->work, frame) < 0 ||
        (runs && agent_work_ahead(&agent->work)))
        return false;
    if (agent->work.back)
        route_back(&agent->route, *agent->work.key_in);
    start(agent);
    return true;
}

/* Handle one frame. Return false if it is invalid. */
static bool take(struct agent *agent, const struct agent_frame *frame)
{
    switch (frame->verb) {
    case AGENT_BEAT: return true;
    case AGENT_FLOW:
    case AGENT_ACK: return tunnel_take(&agent->route, frame) == 0;
    case AGENT_VIA_SSH: return route_in_via_ssh(&agent->route) == 0;
    case AGENT_RUN: return take_run(agent, frame);
    default: return false;
    }
}

static void take_input(struct agent *agent)
{
    ssize_t got = bytes_read(&agent->input, STDIN_FILENO, READ_BYTES);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    agent->over |= got <= 0;
    agent->received_ms = now_ms();
    struct agent_frame frame;
    int next = 0;
    while (!agent->over && (next = agent_frame_next(&agent->input, &frame)) > 0) {
        if (!take(agent, &frame))
            fail(agent, "refused what rdpipe sent",
                 frame.verb == AGENT_RUN ? "a segment that does not fit its hops"
                                         : "an unknown or misplaced message");
        agent_frame_drop(&agent->input, &frame);
    }
    if (next < 0)
        fail(agent, "refused what rdpipe sent", "no message of this version");
}

/* Forward whole lines from the tools; a line with a number is a status. Close the descriptor at its
 * end. */
static void pass_lines(int *fd)
{
    char text[4096];
    ssize_t got = *fd < 0 ? -1 : read(*fd, text, sizeof text - 1);
    if (got == 0)
        shut(fd);
    text[got > 0 ? got : 0] = '\0';
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n")))
        if (*line)
            send_text(*line >= '0' && *line <= '9' ? AGENT_STATUS : AGENT_ANNOUNCE,
                      AGENT_HOP_BACK, line);
}

static void take_signal(struct agent *agent)
{
    if (signals_number(agent->signal_fd)) {
        agent->over = true;
        return;
    }
    int state;
    pid_t pid;
    while ((pid = waitpid(-1, &state, WNOHANG | WUNTRACED)) > 0) {
        if (pid != agent->root)
            continue;
        if (!WIFSTOPPED(state)) {
            agent->status = status_of(state);
            agent->over = true;
            if (!agent_work_tools(&agent->work)) /* otherwise the tools report the status */
                send_status(AGENT_STATUS, agent->status);
        } else if (WSTOPSIG(state) == SIGTTIN || WSTOPSIG(state) == SIGTTOU) {
            fail(agent, "it was stopped", CHILD_ASKS);
        }
    }
}

static int next_wait_ms(struct agent *agent)
{
    int64_t now = now_ms();
    if (agent->silence_ms && now - agent->received_ms > agent->silence_ms)
        fail(agent, "agent", "nothing heard from rdpipe (--timeout)");
    if (now - agent->beat_ms >= AGENT_BEAT_MS) {
        send_text(AGENT_BEAT, AGENT_HOP_BACK, NULL);
        agent->beat_ms = now;
    }
    return (int)(agent->beat_ms + AGENT_BEAT_MS - now);
}

static void attend(struct agent *agent)
{
    while (!agent->over) {
        int wait_ms = next_wait_ms(agent);
        struct pollfd polled[OWN_FDS + AGENT_HOPS] = {
            {STDIN_FILENO, POLLIN, 0},
            {agent->signal_fd, POLLIN, 0},
            {agent->lines_fd, POLLIN, 0},
        };
        tunnels_watched(&agent->route, polled + OWN_FDS);
        if (agent->over)
            break;
        poll(polled, OWN_FDS + AGENT_HOPS, wait_ms);
        if (polled[2].revents)
            pass_lines(&agent->lines_fd);
        if (polled[0].revents)
            take_input(agent);
        if (polled[1].revents)
            take_signal(agent);
        tunnels_pump(&agent->route, false);
    }
}

static void agent_close(struct agent *agent)
{
    /* On SIGTERM, rdrecv removes the temporary file of its target. A command that reads is ended
     * before rdrecv, because rdrecv holds the pipe and must outlive the command. */
    bool file = agent->work.middle == AGENT_WRITE;
    tunnels_pump(&agent->route, agent->status >= 0); /* last output of the tools */
    pass_lines(&agent->lines_fd); /* before the command is ended from here */
    pid_t left = reap_all(file ? 0 : agent_work_tools(&agent->work), GRACE_MS);
    if (left)
        say("process %d could not be ended: it runs as another user", (int)left);
    shut(&agent->lines_fd);
    close(agent->signal_fd);
    bytes_close(&agent->input);
    agent_work_close(&agent->work);
    route_close(&agent->route);
}

static int agent_serve(int silence_ms, int in, int out, int signal_fd)
{
    struct agent agent = {
        .input = {.secret = true},
        .stdin_fd = in, .stdout_fd = out, .lines_fd = -1,
        .signal_fd = signal_fd,
        .silence_ms = silence_ms,
        .status = -1,
        .received_ms = now_ms(),
    };
    route_init(&agent.route);
    agent_work_close(&agent.work);
    dprintf(STDOUT_FILENO, AGENT_GREETING "%d\n", AGENT_VERSION);
    if (signal_fd < 0 || reap_adopt() < 0)
        fail(&agent, "agent", strerror(errno));
    attend(&agent);
    agent_close(&agent);
    int status = agent.status < 0 ? AGENT_RELEASED : agent.status;
    send_status(AGENT_EXIT, status);
    return status;
}

/* Wait for the agent to end, then end all remaining processes. */
static int guard(pid_t pid, int signal_fd)
{
    struct pollfd polled = {signal_fd, POLLIN, 0};
    int state = 0;
    pid_t gone;
    while ((gone = waitpid(-1, &state, WNOHANG)) != pid && !(gone < 0 && errno == ECHILD))
        if (gone == 0 && poll(&polled, 1, -1) > 0 && signals_number(signal_fd))
            kill(pid, SIGTERM);
    reap_all(0, 0);
    return status_of(state);
}

static int agent_guarded(int silence_ms, int in, int out)
{
    int signal_fd = signals_watch(); /* in a child process it reports that child's signals */
    pid_t above = getpid();
    pid_t pid = reap_adopt() == 0 ? fork() : -1;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        _exit(getppid() == above ? agent_serve(silence_ms, in, out, signal_fd) : 1);
    }
    if (pid > 0)
        return guard(pid, signal_fd);
    fprintf(stderr, "rdpipe: agent: %m\n");
    return 1;
}

void agent_main(int argc, char **argv)
{
    if ((argc != 3 && argc != 5) || strcmp(argv[1], "--agent") != 0)
        return;
    bool local = argc == 5;
    exit(agent_guarded(atoi(argv[2]), local ? atoi(argv[3]) : -1, local ? atoi(argv[4]) : -1));
}
