/* The command that produces or consumes the stream: see child.h. */
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

enum { PIPE_BYTES = 1 << 20, GRACE_MS = 1000, LOOK_MS = 20 };

void child_init(struct child *child)
{
    *child = (struct child){.pid_fd = -1, .fd = -1, .status = -1, .keeper_fd = -1};
}

static void run(char **words, int pipe_fd, int onto, pid_t above)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == above && dup2(pipe_fd, onto) == onto)
        execvp(words[0], words);
    int error = errno;
    say("cannot run %s: %s", words[0], strerror(error));
    _exit(error == ENOENT ? 127 : 126);
}

/* Waits for a byte: all is well. The end of file instead: the one above was killed. */
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

static int start_keeper(struct child *child, struct trouble *trouble)
{
    int life[2];
    if (pipe2(life, O_CLOEXEC) < 0)
        return troubled(trouble, EXIT_FAULT, "cannot make a pipe: %s", strerror(errno));
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
    return troubled(trouble, EXIT_FAULT, "cannot fork: %s", strerror(errno));
}

int child_open(struct child *child, char **words, enum child_side side,
               struct trouble *trouble)
{
    int ends[2];
    pid_t above = getpid();
    child_init(child);
    child->side = side;
    child->name = words[0];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return troubled(trouble, EXIT_FAULT, "cannot make a pipe: %s", strerror(errno));
    int ours = side == CHILD_PRODUCER ? 0 : 1;
    fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
    child->pid = fork();
    if (child->pid == 0)
        run(words, ends[1 - ours], 1 - ours, above);
    int error = errno;
    close(ends[1 - ours]);
    child->fd = ends[ours];
    if (child->pid < 0) {
        child->pid = 0;
        return troubled(trouble, EXIT_FAULT, "cannot fork: %s", strerror(error));
    }
    setpgid(child->pid, child->pid);
    /* Without it (valgrind has none) its end is seen with the next heartbeat. */
    child->pid_fd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    return side == CHILD_CONSUMER ? start_keeper(child, trouble) : 0;
}

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

bool child_ended(struct child *child)
{
    siginfo_t info = {0};
    if (!child->pid || child->status >= 0)
        return child->pid != 0;
    /* It stays a zombie until child_close, so that its group's number stays its own. */
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        info.si_pid == 0)
        return false;
    child->status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    shut(&child->pid_fd);
    return true;
}

int child_check(struct child *child, struct trouble *trouble)
{
    if (!child->pid || !child_ended(child) || child->status == 0)
        return 0;
    return troubled(trouble, child->status, "the %s %.100s failed with status %d",
                    child->side == CHILD_PRODUCER ? "producer" : "consumer", child->name,
                    child->status);
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
    shut(&child->keeper_fd);
    shut(&child->fd);
}

void child_signal(struct child *child, int number)
{
    if (child->pid && child->status < 0)
        kill(-child->pid, number);
}

void child_end(struct child *child)
{
    if (child->pid) {
        child_signal(child, SIGTERM);
        int64_t end_ms = now_ms() + GRACE_MS;
        while (!child_ended(child) && now_ms() < end_ms) {
            struct pollfd polled = {child->pid_fd, POLLIN, 0};
            poll(&polled, 1, child->pid_fd < 0 ? LOOK_MS : (int)(end_ms - now_ms()));
        }
        if (child->status != 0) /* who is left of a command that failed or was ended */
            kill(-child->pid, SIGKILL);
        reap(child->pid);
    }
    shut(&child->pid_fd);
    child->pid = 0;
}

void child_close(struct child *child)
{
    child_end(child);
    child_let_end(child);
}
