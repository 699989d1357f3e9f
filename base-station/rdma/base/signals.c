/* Signals that end this process: see signals.h. */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static int signal_fd = -1, taken; /* static: signals are per process */

/* Add a signal to the blocked ones, unless it is ignored: a blocked signal would be reported even
 * though it is ignored. */
static void signals_add(sigset_t *set, int number)
{
    struct sigaction action;
    if (sigaction(number, NULL, &action) < 0 || action.sa_handler != SIG_IGN)
        sigaddset(set, number);
}

static int block(bool children)
{
    sigset_t set;
    sigemptyset(&set);
    signals_add(&set, SIGINT);
    signals_add(&set, SIGTERM);
    signals_add(&set, SIGHUP);
    if (children) {
        signals_add(&set, SIGQUIT);
        sigaddset(&set, SIGCHLD);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* write(2) then fails with EFBIG */
    signal(SIGCHLD, SIG_DFL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int signals_open(struct error *error)
{
    signal_fd = signal_fd < 0 ? block(false) : signal_fd;
    return signal_fd < 0 ? fault(error, "signalfd: %m") : 0;
}

int signals_watch(void)
{
    return block(true);
}

int signals_number(int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD)
            return (int)info.ssi_signo;
    return 0;
}

bool signals_reached(int number)
{
    sigset_t pending;
    return taken == number || (sigpending(&pending) == 0 && sigismember(&pending, number) == 1);
}

int status_of(int wait_status)
{
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status)
                                  : 128 + WTERMSIG(wait_status);
}

/* Report a pending signal as an error: -1. Return 0 if no signal is pending. */
static int take(struct error *error)
{
    int number = signals_number(signal_fd);
    if (!number)
        return 0;
    taken = number;
    error->heard |= !error->status;
    return fault_status(error, 128 + number, "ended by signal %d (%s)", number,
                    strsignal(number));
}

int signals_wait(struct pollfd *polled, int count, int64_t end_ms, struct error *error)
{
    struct pollfd all[SIGNALS_POLLED_MOST + 1] = {{signal_fd, POLLIN, 0}};
    memcpy(all + 1, polled, (size_t)count * sizeof *polled);
    for (;;) {
        int64_t left_ms = end_ms - now_ms();
        if (left_ms > INT32_MAX)
            left_ms = INT32_MAX;
        int ready = poll(all, (nfds_t)count + 1, left_ms > 0 ? (int)left_ms : 0);
        if (ready < 0 && errno != EINTR)
            return fault(error, "poll: %m");
        if (ready > 0 && all[0].revents && take(error) < 0)
            return -1;
        memcpy(polled, all + 1, (size_t)count * sizeof *polled);
        if (ready > (all[0].revents ? 1 : 0))
            return ready;
        if (left_ms <= 0)
            return 0;
    }
}
