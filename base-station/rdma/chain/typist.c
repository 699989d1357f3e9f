/* Reads a terminal for others: see typist.h. */
#include "typist.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descriptors.h"

void typist_init(struct typist *typist)
{
    *typist = (struct typist){.fd = -1, .typed_fd = -1, .life_fd = -1};
}

int typist_open(struct typist *typist)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    typist->fd = ends[0];
    typist->typed_fd = ends[1];
    return 0;
}

/* Until the terminal's end, or until nobody reads the pipe. When the one above was killed,
 * which ends `life_fd`, it only holds the pipe: its end would look like that of the data. */
static void type(int typed_fd, int life_fd)
{
    char text[4096];
    if (dup2(life_fd, STDERR_FILENO) < 0 || dup2(typed_fd, STDOUT_FILENO) < 0)
        return;
    close_range(STDERR_FILENO + 1, ~0U, 0); /* a leash must see that it is let go */
    struct pollfd polled[] = {
        {STDIN_FILENO, POLLIN, 0}, {STDERR_FILENO, POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
    while (!polled[2].revents) {
        if (poll(polled, 3, -1) < 0) {
            if (errno != EINTR)
                return;
        } else if (polled[1].revents) {
            polled[0].fd = polled[1].fd = -1;
        } else if (polled[0].revents) {
            ssize_t got = read(STDIN_FILENO, text, sizeof text);
            if (got < 0 && (errno == EINTR || errno == EAGAIN))
                continue;
            if (got <= 0 || write(STDOUT_FILENO, text, (size_t)got) != got)
                return;
        }
    }
}

int typist_start(struct typist *typist)
{
    int life[2];
    if (typist->typed_fd < 0)
        return 0;
    if (pipe2(life, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        type(typist->typed_fd, life[0]);
        _exit(0);
    }
    close(life[0]);
    if (pid < 0) {
        close(life[1]);
        return -1;
    }
    typist->pid = pid;
    typist->life_fd = life[1];
    shut(&typist->typed_fd);
    shut(&typist->fd);
    return 0;
}

void typist_close(struct typist *typist)
{
    if (typist->pid) {
        kill(typist->pid, SIGKILL);
        waitpid(typist->pid, NULL, 0);
    }
    shut(&typist->life_fd);
    shut(&typist->typed_fd);
    shut(&typist->fd);
}
