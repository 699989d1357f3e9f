/*
 * Remote end of an SSH session: run one segment of a pipe, and end all of it when rdpipe falls
 * silent. See leash.h, and leash_work.h for the protocol.
 *
 *   guard     only waits: if the leash below it is killed, it ends the other processes
 *   `- leash  reads stdin, sends beats, runs the segment
 *      `- rdrecv -- rdsend -- the user's command
 */
#include "leash.h"

#include <errno.h>
#include <fcntl.h>
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

#include "child.h"
#include "descriptors.h"
#include "leash_work.h"
#include "quote.h"
#include "reap.h"
#include "signals.h"
#include "trouble.h"
#include "way.h"

enum { GRACE_MS = 500, LOCK_MS = 50, READ_BYTES = 1 << 16, OWN_FDS = 3 };

struct leash {
    struct leash_work work;
    struct way way;
    struct bytes input;
    int stdin_fd, stdout_fd; /* for the segment; -1 = /dev/null; not owned */
    int append_fd;           /* the file of ">>", locked; its descriptor is the lock */
    off_t append_bytes;      /* its original length; -1 if it cannot be truncated */
    int lines_fd;  /* announcements of rdrecv and the command's status */
    int signal_fd;
    pid_t root;    /* the outermost tool; 0 before it started */
    bool waits;    /* to be started, or sent an address, once path and lock are ready */
    bool connected; /* LEASH_CONNECTED was sent */
    int64_t heard_ms, beaten_ms;
    int status; /* of the outermost tool, -1 while it runs */
    bool over;  /* rdpipe left, or needs no more */
};

static void tell(enum leash_verb verb, enum leash_hop hop, const char *text)
{
    leash_say(verb, hop, text, text ? strlen(text) + 1 : 0);
}

static void tell_status(enum leash_verb verb, int status)
{
    char *text = text_of("%d", status);
    tell(verb, LEASH_HOP_BACK, text);
    free(text);
}

static void fail(struct leash *leash, const char *what, const char *why)
{
    struct bytes note = {0}; /* quoted as one line, because file names may hold newlines */
    bytes_format(&note, "%s: ", what);
    quote_shown(&note, why);
    tell(LEASH_NOTE, LEASH_HOP_BACK, note.data);
    bytes_close(&note);
    leash->status = leash->status < 0 ? 1 : leash->status;
    leash->over = true;
}

/*
 * Open the file of ">>" without blocking: a blocking open(2) on a FIFO would stall the leash.
 * Return 1 if the FIFO has no reader yet, 0 if open, -1 with errno.
 */
static int append_open(struct leash *leash, const char *path)
{
    struct stat state;
    int fd = open(path,
                  O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    if (fd < 0 && errno == ENXIO && stat(path, &state) == 0 && S_ISFIFO(state.st_mode))
        return 1;
    if (fd < 0)
        return -1;
    if (fcntl(fd, F_SETFL, O_APPEND) < 0 || fstat(fd, &state) < 0) {
        close(fd);
        return -1;
    }
    leash->append_fd = fd;
    leash->append_bytes = S_ISREG(state.st_mode) ? 0 : -1;
    return 0;
}

/*
 * Open and lock the file of ">>". Return 0 on success, 1 to retry later because another process
 * holds the lock or the FIFO has no reader, and -1 with errno.
 */
static int append_lock(struct leash *leash, const char *path)
{
    struct stat state;
    int result = leash->append_fd < 0 ? append_open(leash, path) : 0;
    if (result || leash->append_bytes < 0)
        return result;
    if (flock(leash->append_fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK || errno == EINTR ? 1 : -1;
    if (fstat(leash->append_fd, &state) < 0)
        return -1;
    leash->append_bytes = state.st_size;
    return 0;
}

/*
 * Truncate the appended file to its original length if the segment failed. All processes of the
 * segment have ended.
 */
static void append_close(struct leash *leash)
{
    struct stat state;
    if (leash->append_fd >= 0 && leash->status && leash->append_bytes >= 0 &&
        fstat(leash->append_fd, &state) == 0 && state.st_size > leash->append_bytes &&
        ftruncate(leash->append_fd, leash->append_bytes) < 0)
        tell(LEASH_NOTE, LEASH_HOP_BACK, "could not cut the appended file back");
    shut(&leash->append_fd);
}

/* Pass a key to a tool as hex digits in a pipe that is large enough to hold them all. */
static int key_pipe(const char *key)
{
    int ends[2];
    if (!*key || pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    if (write(ends[1], key, LEASH_KEY) != LEASH_KEY)
        shut(&ends[0]);
    close(ends[1]);
    return ends[0];
}

/* Start the segment in its own process group. Return 0, or -1 with errno. */
static int spawn(struct leash *leash)
{
    const struct leash_work *work = &leash->work;
    struct way *way = &leash->way;
    struct words words;
    int lines[2], guests[2] = {-1, -1}, where[2] = {-1, -1};
    bool in = *work->key_in, ahead = leash_work_ahead(work);
    if (pipe2(lines, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    leash->lines_fd = lines[0];
    if ((in && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, guests) < 0) ||
        (ahead && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, where) < 0)) {
        close(lines[1]);
        return -1;
    }
    way->guests_fd = guests[1];
    way->where_fd = where[1];
    enum { OURS = 2, COMMANDS = 3, ALL = 10 }; /* the others are for the tools only */
    struct handed handed[ALL] = {
        {leash->stdin_fd, STDIN_FILENO},
        {leash->append_fd >= 0 ? leash->append_fd : leash->stdout_fd, STDOUT_FILENO},
        {way->back_fd, work->back && !in ? STDIN_FILENO : LEASH_BACK_FD},
        {key_pipe(work->key_in), LEASH_KEY_IN_FD},
        {key_pipe(work->key_out), LEASH_KEY_OUT_FD},
        {guests[0], LEASH_GUESTS_FD},
        {way->socket_fd, LEASH_SOCKET_FD},
        {where[0], LEASH_WHERE_FD},
        {lines[1], LEASH_STATUS_FD},
        {dup(lines[1]), LEASH_ANNOUNCE_FD},
    };
    leash_work_open(&words, work);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        become(words.word, handed, leash_work_tools(work) ? ALL : COMMANDS);
    }
    words_close(&words);
    way->socket_fd = way->back_fd = -1; /* closed with the others */
    for (size_t i = OURS; i < ALL; i++)
        shut(&handed[i].from);
    if (pid < 0)
        return -1;
    setpgid(pid, pid);
    leash->root = pid;
    leash->waits = false;
    return 0;
}

/* Send the address to a sender that is already running. */
static int tell_where(struct leash *leash)
{
    struct way *way = &leash->way;
    char *text = text_of("%s %s", leash->work.port, leash->work.addresses);
    int told = fd_send(way->where_fd, way->socket_fd, text);
    free(text);
    shut(&way->socket_fd);
    shut(&way->where_fd);
    leash->waits = false;
    return told;
}

/*
 * Start the segment once its hop has a path and the file of ">>" is locked. A source starts at
 * once.
 */
static void start(struct leash *leash)
{
    const struct leash_work *work = &leash->work;
    bool ahead = leash_work_ahead(work), runs = leash->root;
    int found = ahead ? 1 : way_find(&leash->way, work, STDIN_FILENO), locked = 0;
    if (found < 0 && work->way == LEASH_THROUGH_SSH) {
        fail(leash, "cannot start", strerror(errno));
    } else if (found < 0) {
        leash->waits = false; /* until rdpipe sends another path */
        tell(LEASH_UNREACHED, LEASH_HOP_OUT, NULL);
    }
    if (found <= 0)
        return;
    if (!ahead && work->way == LEASH_BACK && !leash->connected)
        tell(LEASH_CONNECTED, LEASH_HOP_OUT, NULL);
    leash->connected = !ahead;
    if (work->middle == LEASH_APPEND) {
        char *path = leash_work_file(work->words.word[0]);
        locked = append_lock(leash, path);
        char *why = text_of("%s: %m", path);
        if (locked < 0)
            fail(leash, "cannot append", why);
        free(why);
        free(path);
    }
    if (locked == 0 && (runs ? tell_where(leash) : spawn(leash)) < 0)
        fail(leash, "cannot start", strerror(errno));
}

/* Connect the hop into the segment as told by rdpipe. */
static void take_dial(struct leash *leash, const struct leash_said *said)
{
    struct words to = {0};
    leash_texts(&to, said);
    if (way_dial(&leash->way, &to, STDIN_FILENO) < 0)
        tell(LEASH_UNREACHED, LEASH_HOP_IN, NULL);
    words_close(&to);
}

/* Handle one frame. Return false if it is invalid. */
static bool take(struct leash *leash, const struct leash_said *said)
{
    switch (said->verb) {
    case LEASH_BEAT: return true;
    case LEASH_FLOW:
    case LEASH_TOOK: return tunnel_take(&leash->way, said) == 0;
    case LEASH_DIAL: take_dial(leash, said); return true;
    case LEASH_RUN: break;
    default: return false;
    }
    leash->waits = (!leash->root || leash->way.where_fd >= 0) &&
                   leash_work_take(&leash->work, said) == 0 &&
                   !(leash->root && leash_work_ahead(&leash->work));
    if (leash->waits && leash->work.back)
        way_back(&leash->way, *leash->work.key_in); /* frames for it may already be queued */
    return leash->waits;
}

static void take_input(struct leash *leash)
{
    ssize_t got = bytes_read(&leash->input, STDIN_FILENO, READ_BYTES);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    leash->over |= got <= 0;
    leash->heard_ms = now_ms();
    struct leash_said said;
    int next = 0;
    while (!leash->over && (next = leash_next(&leash->input, &said)) > 0) {
        if (!take(leash, &said))
            fail(leash, "refused what rdpipe sent",
                 said.verb == LEASH_RUN ? "a segment that does not fit its hops"
                                        : "what this version does not know");
        leash_heard(&leash->input, &said);
    }
    if (next < 0)
        fail(leash, "refused what rdpipe sent", "no frame of this version");
}

/*
 * Forward whole lines from the tools; a line with a number is a status. Close the descriptor at its
 * end.
 */
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
            tell(*line >= '0' && *line <= '9' ? LEASH_STATUS : LEASH_ANNOUNCE,
                 LEASH_HOP_BACK, line);
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
        if (pid != leash->root)
            continue;
        if (!WIFSTOPPED(state)) {
            leash->status = status_of(state);
            leash->over = true;
            if (!leash_work_tools(&leash->work)) /* otherwise the tools report the status */
                tell_status(LEASH_STATUS, leash->status);
        } else if (WSTOPSIG(state) == SIGTTIN || WSTOPSIG(state) == SIGTTOU) {
            fail(leash, "it was stopped", CHILD_ASKS);
        }
    }
}

static int next_wait_ms(struct leash *leash)
{
    int64_t now = now_ms();
    if (now - leash->heard_ms > LEASH_SILENCE_MS)
        fail(leash, "leash", "nothing heard from rdpipe for 10 s");
    if (now - leash->beaten_ms >= LEASH_BEAT_MS) {
        tell(LEASH_BEAT, LEASH_HOP_BACK, NULL);
        leash->beaten_ms = now;
    }
    if (leash->waits)
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
            {leash->lines_fd, POLLIN, 0},
        };
        tunnels_watched(&leash->way, polled + OWN_FDS);
        if (leash->over)
            break;
        poll(polled, OWN_FDS + LEASH_HOPS, wait_ms);
        if (polled[2].revents)
            pass_lines(&leash->lines_fd);
        if (polled[0].revents)
            take_input(leash);
        if (polled[1].revents)
            take_signal(leash);
        tunnels_pump(&leash->way, false);
        if (!leash->over && leash->waits)
            start(leash);
    }
}

static void leash_close(struct leash *leash)
{
    /*
     * On SIGTERM, rdrecv removes the temporary file of its target. A command that reads is ended
     * before rdrecv, because rdrecv holds the pipe and must outlive the command.
     */
    bool file = leash->work.middle == LEASH_WRITE;
    tunnels_pump(&leash->way, leash->status >= 0); /* last output of the tools */
    pass_lines(&leash->lines_fd); /* before the command is ended from here */
    pid_t left = reap_all(file ? 0 : leash_work_tools(&leash->work), GRACE_MS);
    if (left)
        say("process %d could not be ended: it runs as another user", (int)left);
    append_close(leash);
    shut(&leash->lines_fd);
    close(leash->signal_fd);
    bytes_close(&leash->input);
    leash_work_close(&leash->work);
    way_close(&leash->way);
}

static int leash_serve(int in, int out, int signal_fd)
{
    struct leash leash = {
        .stdin_fd = in, .stdout_fd = out, .append_fd = -1, .lines_fd = -1,
        .signal_fd = signal_fd,
        .status = -1,
        .heard_ms = now_ms(),
    };
    way_init(&leash.way);
    leash_work_close(&leash.work);
    dprintf(STDOUT_FILENO, LEASH_GREETING "\n");
    if (signal_fd < 0 || reap_adopt() < 0)
        fail(&leash, "leash", strerror(errno));
    attend(&leash);
    leash_close(&leash);
    int status = leash.status < 0 ? LEASH_LET_GO : leash.status;
    tell_status(LEASH_EXIT, status);
    return status;
}

/* Wait for the leash to end, then end all remaining processes. */
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
    int signal_fd = signals_watch(); /* in a child process it reports that child's signals */
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

void leash_main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--leash") == 0)
        exit(leash_guarded(-1, -1));
    if (argc == 4 && strcmp(argv[1], "--leash") == 0)
        exit(leash_guarded(atoi(argv[2]), atoi(argv[3])));
}
