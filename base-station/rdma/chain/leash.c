/* The remote end of an SSH session, which runs one segment of a pipe and ends all of it
 * when rdpipe falls silent: see leash_work.h for what it speaks.
 *
 *   guard     does nothing but wait: when the leash below it was killed, it ends the rest
 *   `- leash  reads stdin, beats, runs the segment
 *      `- rdrecv -- rdsend -- leash --leash-run -- the user's command
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bytes.h"
#include "child.h"
#include "descriptors.h"
#include "leash_work.h"
#include "quote.h"
#include "reap.h"
#include "signals.h"
#include "trouble.h"
#include "way.h"

enum { GRACE_MS = 500, LOCK_MS = 50, READ_BYTES = 1 << 16, OWN_FDS = 3 };

/* One segment at work: its process, its descriptors, its appended file. */
struct leash_run {
    int stdin_fd, stdout_fd; /* what the segment gets; -1 = /dev/null; not owned */
    int append_fd;           /* the file of ">>", locked; its descriptor is the lock */
    off_t append_bytes;      /* how long it was; -1 if it cannot be cut back */
    int lines_fd; /* what rdrecv announces, how the command ended */
    pid_t root; /* the outermost tool; 0 before it started */
};

struct leash {
    struct leash_work work;
    struct leash_run run;
    struct way way;
    struct bytes input;
    int signal_fd;
    int64_t heard_ms, beaten_ms;
    int status; /* of the outermost tool, -1 while it runs */
    bool over;  /* nothing more is expected from rdpipe, or it left */
    bool reached; /* the way of the hop out of it is found */
};

static bool is_fifo(const char *path)
{
    struct stat state;
    return stat(path, &state) == 0 && S_ISFIFO(state.st_mode);
}

/* A leash that waited in open(2) for a FIFO's reader would hear of nothing else. 1: there
 * is none yet. */
static int append_open(struct leash_run *run, const char *path)
{
    struct stat state;
    int fd = open(path,
                  O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    if (fd < 0)
        return errno == ENXIO && is_fifo(path) ? 1 : -1;
    if (fcntl(fd, F_SETFL, O_APPEND) < 0 || fstat(fd, &state) < 0) {
        close(fd);
        return -1;
    }
    run->append_fd = fd;
    run->append_bytes = S_ISREG(state.st_mode) ? 0 : -1;
    return 0;
}

/* Opens and locks the file of ">>". 0: have it; 1: someone else has the lock, or nobody
 * reads the FIFO, ask again; -1: `*why` names what failed. */
static int run_lock(struct leash_run *run, const struct leash_work *work, char **why)
{
    if (work->middle != LEASH_APPEND)
        return 0;
    char *path = leash_work_file(work->middle_words.word[0]);
    int result = run->append_fd < 0 ? append_open(run, path) : 0;
    struct stat state;
    if (result == 0 && run->append_bytes >= 0) {
        if (flock(run->append_fd, LOCK_EX | LOCK_NB) < 0)
            result = errno == EWOULDBLOCK || errno == EINTR ? 1 : -1;
        else if ((result = fstat(run->append_fd, &state)) == 0)
            run->append_bytes = state.st_size;
    }
    if (result < 0)
        *why = text_of("%s: %m", path);
    free(path);
    return result;
}

/* A key goes to a tool as digits, through a pipe that holds them all. */
static int key_pipe(const char *key)
{
    int ends[2];
    if (!key[0] || pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    if (write(ends[1], key, LEASH_KEY) != LEASH_KEY)
        shut(&ends[0]);
    close(ends[1]);
    return ends[0];
}

/* Starts the segment in a process group of its own. 0, or -1 with errno. */
static int spawn(struct leash_run *run, const struct leash_work *work, struct way *way,
                 char **words, int lines)
{
    int guests[2] = {-1, -1};
    if (work->has_in && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, guests) < 0)
        return -1;
    way->guests_fd = guests[1];
    enum { OURS = 4 }; /* the rest is the segment's alone */
    struct handed handed[] = {
        {run->stdin_fd, 0},
        {run->append_fd >= 0 ? run->append_fd : run->stdout_fd, 1},
        {lines, LEASH_ANNOUNCE_FD},
        {lines, LEASH_STATUS_FD},
        {key_pipe(work->key_in), LEASH_KEY_IN_FD},
        {key_pipe(work->key_out), LEASH_KEY_OUT_FD},
        {guests[0], LEASH_GUESTS_FD},
        {way->socket_fd, LEASH_SOCKET_FD},
        {way->back_fd, work->back && !work->has_in ? STDIN_FILENO : LEASH_BACK_FD},
    };
    size_t count = sizeof handed / sizeof *handed;
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        become(words, handed, count);
    }
    way->socket_fd = way->back_fd = -1; /* closed with the others */
    for (size_t i = OURS; i < count; i++)
        shut(&handed[i].from);
    if (pid < 0)
        return -1;
    setpgid(pid, pid);
    run->root = pid;
    return 0;
}

static int run_open(struct leash_run *run, const struct leash_work *work,
                    struct way *way)
{
    char self[PATH_MAX];
    int lines[2];
    if (leash_work_self(self) < 0 || pipe2(lines, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    struct words words;
    run->lines_fd = lines[0];
    leash_work_open(&words, work, self);
    int result = spawn(run, work, way, words.word, lines[1]);
    shut(&lines[1]);
    words_close(&words);
    return result;
}

/* Cuts an appended file back unless `whole`, and closes. Nothing of it runs any more.
 * Returns 0, or -1 with errno when the file could not be cut back. */
static int run_close(struct leash_run *run, bool whole)
{
    int result = 0;
    struct stat state;
    if (run->append_fd >= 0 && !whole && run->append_bytes >= 0 &&
        fstat(run->append_fd, &state) == 0 && state.st_size > run->append_bytes)
        result = ftruncate(run->append_fd, run->append_bytes);
    shut(&run->append_fd);
    shut(&run->lines_fd);
    return result;
}

static void tell(const char *verb, const char *text)
{
    struct bytes line = {0};
    bytes_format(&line, text ? "%s %s\n" : "%s\n", verb, text);
    leash_say(&line);
    bytes_close(&line);
}

static void fail(struct leash *leash, const char *what, const char *why)
{
    struct bytes note = {0}; /* one line, whatever a file's name holds */
    bytes_format(&note, "%s: ", what);
    quote_shown(&note, why);
    tell("note", note.data);
    bytes_close(&note);
    leash->status = leash->status < 0 ? 1 : leash->status;
    leash->over = true;
}

/* The way back, and the hop into it, of which rdpipe found out. */
static void look_in(struct leash *leash)
{
    struct leash_work *work = &leash->work;
    if (work->back)
        way_back(&leash->way, work->has_in);
    bool asked = work->dial.token || work->tunnel;
    if (!asked || leash->over || !leash->run.root)
        return;
    if (work->dial.token ? way_dial(&leash->way, &work->dial, STDIN_FILENO) < 0
                         : way_tunnel(&leash->way) < 0)
        tell("unreached", "in");
    leash_dial_close(&work->dial);
    free(work->tunnel);
    work->tunnel = NULL;
}

static void take_input(struct leash *leash)
{
    ssize_t got = bytes_read(&leash->input, STDIN_FILENO, READ_BYTES);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    leash->over |= got <= 0;
    leash->heard_ms = now_ms();
    struct leash_said said;
    while (!leash->over && leash_next(&leash->input, &said)) {
        const char *why = "more than it may send";
        if (said.line ? leash_take(&leash->work, said.line, &why) < 0
                      : tunnel_take(&leash->way, &said) < 0)
            fail(leash, "refused what rdpipe sent", why);
        look_in(leash); /* before a frame of it, which may be here, too */
        leash_heard(&leash->input, &said);
    }
    if (leash->input.length > LEASH_LINE_BYTES)
        fail(leash, "refused what rdpipe sent", "a line too long");
}

/* Passes whole lines on from the tools: a status is a number. Closes the descriptor at
 * its end. */
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
            tell(*line >= '0' && *line <= '9' ? "status" : "announce", line);
}

static void take_signal(struct leash *leash)
{
    if (signals_number(leash->signal_fd)) {
        leash->over = true;
        return;
    }
    int state;
    pid_t pid;
    while ((pid = waitpid(-1, &state, WNOHANG | WUNTRACED)) > 0) {
        if (pid != leash->run.root)
            continue;
        if (!WIFSTOPPED(state)) {
            leash->status = status_of(state);
            leash->over = true;
        } else if (WSTOPSIG(state) == SIGTTIN || WSTOPSIG(state) == SIGTTOU) {
            fail(leash, "it was stopped", CHILD_ASKS);
        }
    }
}

static void start(struct leash *leash)
{
    char *why = NULL;
    int found = way_find(&leash->way, &leash->work, STDIN_FILENO);
    if (found < 0 && leash->work.way == LEASH_THROUGH_SSH) {
        fail(leash, "cannot start", strerror(errno));
        return;
    }
    if (found < 0) {
        leash->work.complete = false; /* until rdpipe says how else */
        tell("unreached", "out");
    }
    if (found <= 0)
        return;
    if (leash->work.way == LEASH_BACK && !leash->reached)
        tell("reached", "out");
    leash->reached = true;
    int locked = run_lock(&leash->run, &leash->work, &why);
    if (locked < 0)
        fail(leash, "cannot append", why);
    else if (locked == 0 && run_open(&leash->run, &leash->work, &leash->way) < 0)
        fail(leash, "cannot start", strerror(errno));
    free(why);
}

static int next_wait_ms(struct leash *leash)
{
    int64_t now = now_ms();
    if (now - leash->heard_ms > LEASH_SILENCE_MS)
        fail(leash, "leash", "nothing heard from rdpipe for 10 s");
    if (now - leash->beaten_ms >= LEASH_BEAT_MS) {
        tell("beat", NULL);
        leash->beaten_ms = now;
    }
    if (leash->work.complete && !leash->run.root)
        return LOCK_MS;
    return (int)(leash->beaten_ms + LEASH_BEAT_MS - now);
}

static void attend(struct leash *leash)
{
    while (!leash->over) {
        int wait_ms = next_wait_ms(leash);
        struct pollfd polled[OWN_FDS + LEASH_HOPS] = {
            {STDIN_FILENO, POLLIN, 0},
            {leash->signal_fd, POLLIN, 0},
            {leash->run.lines_fd, POLLIN, 0},
        };
        tunnels_watched(&leash->way, polled + OWN_FDS);
        if (leash->over)
            break;
        poll(polled, OWN_FDS + LEASH_HOPS, wait_ms);
        if (polled[2].revents)
            pass_lines(&leash->run.lines_fd);
        if (polled[0].revents)
            take_input(leash);
        if (polled[1].revents)
            take_signal(leash);
        tunnels_pump(&leash->way, false);
        if (!leash->over && leash->work.complete && !leash->run.root)
            start(leash);
    }
}

static void leash_close(struct leash *leash)
{
    /* rdrecv ends its target's temporary file on SIGTERM; a command's reader is told
     * before rdrecv, which holds the pipe that must not end before it. */
    bool file = leash->work.middle == LEASH_WRITE;
    tunnels_pump(&leash->way, leash->status >= 0); /* what its tools said last */
    pass_lines(&leash->run.lines_fd); /* before the command is ended from here */
    pid_t left = reap_all(file ? 0 : leash_work_tools(&leash->work) + 1, GRACE_MS);
    if (left)
        say("process %d could not be ended: it runs as another user", (int)left);
    if (run_close(&leash->run, leash->status == 0) < 0)
        tell("note", "could not cut the appended file back");
    close(leash->signal_fd);
    bytes_close(&leash->input);
    leash_work_close(&leash->work);
    way_close(&leash->way);
}

static int leash_serve(int in, int out, int signal_fd)
{
    struct leash leash = {
        .run = {.stdin_fd = in, .stdout_fd = out, .append_fd = -1, .lines_fd = -1},
        .signal_fd = signal_fd,
        .status = -1,
        .heard_ms = now_ms(),
    };
    way_init(&leash.way);
    if (signal_fd < 0 || reap_adopt() < 0)
        fail(&leash, "leash", strerror(errno));
    tell(LEASH_GREETING, NULL);
    attend(&leash);
    leash_close(&leash);
    int status = leash.status < 0 ? LEASH_LET_GO : leash.status;
    char text[16];
    snprintf(text, sizeof text, "%d", status);
    tell("exit", text);
    return status;
}

/* Ends when the leash has ended, and everything with it. */
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

static int leash_guarded(int in, int out)
{
    int signal_fd = signals_watch(); /* in a child it shows the child's */
    pid_t above = getpid();
    pid_t pid = reap_adopt() == 0 ? fork() : -1;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        _exit(getppid() == above ? leash_serve(in, out, signal_fd) : 1);
    }
    if (pid > 0)
        return guard(pid, signal_fd);
    fprintf(stderr, "rdpipe: leash: %m\n");
    return 1;
}

static volatile sig_atomic_t told_to_end;

static void be_told(int number)
{
    (void)number;
    told_to_end = 1;
}

/* Runs a command as a child that dies with this process, and tells how it ended. The
 * command hears a SIGTERM to their group, too, and has the time to obey: how it ends then
 * tells nothing. */
static int leash_command(int status_fd, char **words)
{
    pid_t above = getpid();
    if (signal(SIGTERM, be_told) == SIG_IGN)
        signal(SIGTERM, SIG_IGN);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close_range(STDERR_FILENO + 1, LEASH_BACK_FD - 1, CLOSE_RANGE_CLOEXEC);
        close_range(LEASH_BACK_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC);
        if (getppid() != above || told_to_end)
            _exit(126);
        become(words, NULL, 0);
    }
    if (pid < 0)
        say("cannot fork: %m");
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    int state = 1 << 8;
    while (pid > 0 && waitpid(pid, &state, 0) < 0 && errno == EINTR)
        ;
    if (!told_to_end)
        dprintf(status_fd, "%d\n", status_of(state));
    return status_of(state);
}

void leash_main(int argc, char **argv)
{
    standard_open();
    if (argc > 3 && strcmp(argv[1], "--leash-run") == 0)
        exit(leash_command(atoi(argv[2]), argv + 3));
    if (argc == 2 && strcmp(argv[1], "--leash") == 0)
        exit(leash_guarded(-1, -1));
    if (argc == 4 && strcmp(argv[1], "--leash") == 0)
        exit(leash_guarded(atoi(argv[2]), atoi(argv[3])));
}
