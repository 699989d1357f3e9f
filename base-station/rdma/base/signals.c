/* The signals that end this process: see signals.h. */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POLLED_MOST = 7 };

static int signal_fd = -1; /* signals are a process's, so this is too */

/* Adds one to those to block, unless it is ignored: blocked, it would be heard all the
 * same. */
static void signals_add(sigset_t *set, int number)
{
    struct sigaction action;
    if (sigaction(number, NULL, &action) < 0 || action.sa_handler != SIG_IGN)
        sigaddset(set, number);
}

int signals_open(void)
{
    sigset_t set;
    if (signal_fd >= 0)
        return signal_fd;
    sigemptyset(&set);
    signals_add(&set, SIGINT);
    signals_add(&set, SIGTERM);
    signals_add(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* write(2) says EFBIG */
    signal(SIGCHLD, SIG_DFL);
    signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return signal_fd;
}

int signals_watch(void)
{
    const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        signals_add(&set, numbers[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int signals_number(int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD)
            return (int)info.ssi_signo;
    return 0;
}

int status_of(int wait_status)
{
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status)
                                  : 128 + WTERMSIG(wait_status);
}

int signals_take(struct trouble *trouble)
{
    struct signalfd_siginfo info;
    if (signal_fd < 0 || read(signal_fd, &info, sizeof info) != sizeof info)
        return 0;
    trouble->heard |= !trouble->status;
    return troubled(trouble, 128 + (int)info.ssi_signo, "ended by signal %u (%s)",
                    info.ssi_signo, strsignal((int)info.ssi_signo));
}

int signals_wait(struct pollfd *polled, int count, int64_t end_ms,
                 struct trouble *trouble)
{
    struct pollfd all[POLLED_MOST + 1] = {{signal_fd, POLLIN, 0}};
    memcpy(all + 1, polled, (size_t)count * sizeof *polled);
    for (;;) {
        int64_t left_ms = end_ms - now_ms();
        if (left_ms > INT32_MAX)
            left_ms = INT32_MAX;
        int ready = poll(all, (nfds_t)count + 1, left_ms > 0 ? (int)left_ms : 0);
        if (ready < 0 && errno != EINTR)
            return troubled(trouble, EXIT_FAULT, "poll: %m");
        if (ready > 0 && all[0].revents && signals_take(trouble) < 0)
            return -1;
        memcpy(polled, all + 1, (size_t)count * sizeof *polled);
        if (ready > (all[0].revents ? 1 : 0))
            return ready;
        if (left_ms <= 0)
            return 0;
    }
}
