/* Command that produces or consumes the stream: see child.h. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descriptors.h"
#include "signals.h"

enum { PIPE_BYTES = 1 << 20, GRACE_MS = 1000, LOOK_MS = 20 };

void child_init(struct child *child)
{
    *child = (struct child){.pid_fd = -1, .fd = -1, .status = -1, .status_fd = -1,
                            .keeper_fd = -1};
}

/* Hold the consumer's pipe until a byte arrives, the sign of success. An end of file means that the
 * parent was killed: then hold the pipe until the consumer is killed, too. */
static void keep(int life_fd, int pipe_fd, pid_t consumer)
{
    setpgid(0, 0);
    char word;
    if (dup2(life_fd, 0) == 0 && dup2(pipe_fd, 1) == 1) {
        close_range(2, ~0U, 0);
        ssize_t got;
        while ((got = read(0, &word, 1)) < 0 && errno == EINTR)
            ;
        if (got == 1)
            _exit(0);
    }
    kill(-consumer, SIGKILL);
    _exit(1);
}

static int start_keeper(struct child *child, struct error *error)
{
    int life[2];
    if (pipe2(life, O_CLOEXEC) < 0)
        return fault(error, "cannot make a pipe: %m");
    child->keeper = fork();
    if (child->keeper == 0) {
        close(life[1]);
        keep(life[0], child->fd, child->pid);
    }
    close(life[0]);
    child->keeper_fd = life[1];
    if (child->keeper > 0)
        return 0;
    child->keeper = 0;
    return fault(error, "cannot fork: %m");
}

int child_open(struct child *child, char **words, enum child_side side, struct error *error)
{
    int ends[2], status_fd = child->status_fd;
    pid_t above = getpid();
    child_init(child);
    child->status_fd = status_fd;
    if (status_fd >= 0)
        fcntl(status_fd, F_SETFD, FD_CLOEXEC);
    child->side = side;
    child->name = words[0];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return fault(error, "cannot make a pipe: %m");
    int ours = side == CHILD_PRODUCER ? 0 : 1;
    fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
    child->pid = fork();
    if (child->pid == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == above)
            become(words, &(struct handed){ends[1 - ours], 1 - ours}, 1);
        _exit(1);
    }
    int code = errno;
    close(ends[1 - ours]);
    child->fd = ends[ours];
    if (child->pid < 0) {
        child->pid = 0;
        return fault(error, "cannot fork: %s", strerror(code));
    }
    setpgid(child->pid, child->pid);
    /* Without a pidfd (valgrind lacks them) the exit is noticed at the next heartbeat. */
    child->pid_fd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    return side == CHILD_CONSUMER ? start_keeper(child, error) : 0;
}

/* Return true once the command has exited; `status` is then set. */
static bool child_ended(struct child *child)
{
    siginfo_t info = {0};
    if (!child->pid || child->status >= 0)
        return child->pid != 0;
    /* The command stays a zombie until child_close, so that its process group number is not
     * reused. */
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) < 0 ||
        info.si_pid == 0)
        return false;
    if (info.si_code == CLD_STOPPED) {
        if (info.si_status == SIGTTIN || info.si_status == SIGTTOU)
            child->stopped = info.si_status;
        return false;
    }
    child->status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    /* A signal to this process group reaches a command that has not yet left the group. */
    child->told |= info.si_code == CLD_KILLED && signals_reached(info.si_status);
    if (child->status_fd >= 0 && !child->told)
        dprintf(child->status_fd, "%d\n", child->status);
    shut(&child->pid_fd);
    return true;
}

int child_check(struct child *child, struct error *error)
{
    const char *what = child->side == CHILD_PRODUCER ? "producer" : "consumer";
    if (!child->pid)
        return 0;
    bool ended = child_ended(child);
    if (!ended && child->stopped)
        return fault_status(error, 128 + child->stopped,
                        "the %s %.100s was stopped: " CHILD_ASKS, what, child->name);
    if (!ended || child->status == 0)
        return 0;
    error->heard |= !error->status;
    return fault_status(error, child->status, "the %s %.100s failed with status %d", what,
                    child->name, child->status);
}

static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void child_let_end(struct child *child)
{
    if (child->keeper) {
        while (write(child->keeper_fd, "k", 1) < 0 && errno == EINTR)
            ;
        reap(child->keeper);
        child->keeper = 0;
    }
    child->whole = true;
    shut(&child->keeper_fd);
    shut(&child->fd);
}

/* Return true if the command succeeded. Its background processes are then left alone. */
static bool is_done(struct child *child)
{
    return child->whole && child_ended(child) && child->status == 0;
}

int child_signal(struct child *child, int number)
{
    if (!child->pid || is_done(child))
        return 0;
    child->told |= !child_ended(child);
    return kill(-child->pid, number);
}

bool child_wait(struct child *child, int limit_ms)
{
    int64_t end_ms = now_ms() + limit_ms, left_ms;
    while (!child_ended(child) && (left_ms = end_ms - now_ms()) > 0) {
        struct pollfd polled = {child->pid_fd, POLLIN, 0};
        poll(&polled, 1, child->pid_fd < 0 ? LOOK_MS : (int)left_ms);
    }
    return child->status >= 0;
}

/* Give the process group a second to end. A process that still reads after the command has exited
 * gets that second, too. Return true if the command has exited. */
static bool ask_to_end(struct child *child)
{
    int64_t end_ms = now_ms() + GRACE_MS, left_ms;
    bool heard = child_signal(child, SIGTERM) == 0;
    child_signal(child, SIGCONT); /* a stopped process handles no other signal */
    if (!child_wait(child, heard ? GRACE_MS : 0))
        return false;
    struct pollfd readers = {child->fd, 0, 0}; /* POLLERR: no reader */
    while (child->side == CHILD_CONSUMER && child->fd >= 0 &&
           (left_ms = end_ms - now_ms()) > 0 && poll(&readers, 1, (int)left_ms) < 0)
        ;
    return true;
}

void child_end(struct child *child)
{
    if (!child->pid)
        return;
    bool done = is_done(child), ended = done;
    if (!done) {
        ended = ask_to_end(child);
        kill(-child->pid, SIGKILL); /* the remaining processes of its group */
        ended = ended || child_wait(child, GRACE_MS);
    }
    if (ended)
        reap(child->pid);
    if (!ended)
        say("%.100s (process %d) could not be ended: it runs as another user",
            child->name, (int)child->pid);
    shut(&child->pid_fd);
    child->pid = 0;
}

void child_close(struct child *child)
{
    if (child->side == CHILD_PRODUCER)
        shut(&child->fd); /* a failing write ends a process that may not be signalled */
    child_end(child);
    child_let_end(child);
}
