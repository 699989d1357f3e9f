/* Opening, passing and inheriting file descriptors: see descriptors.h. */
#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "error.h"

enum { NULL_MOST = 9, TO_MOST = 20 };

void standard_open(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY) < 0)
            return;
}

void shut(int *fd)
{
    int code = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = code;
}

/* Message text, with space for one descriptor in the control data. */
struct carrier {
    struct iovec one;
    struct msghdr message;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
};

static struct msghdr *carrier_open(struct carrier *carrier, char *text, size_t length)
{
    memset(carrier, 0, sizeof *carrier);
    carrier->one = (struct iovec){text, length};
    carrier->message = (struct msghdr){.msg_iov = &carrier->one, .msg_iovlen = 1,
                                       .msg_control = &carrier->control,
                                       .msg_controllen = sizeof carrier->control};
    return &carrier->message;
}

int fd_send(int over, int fd, const char *text)
{
    struct carrier carrier;
    size_t length = strlen(text);
    struct msghdr *message = carrier_open(&carrier, (char *)(uintptr_t)text, length);
    carrier.control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd),
                                              .cmsg_level = SOL_SOCKET,
                                              .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&carrier.control.header), &fd, sizeof fd);
    if (fd < 0)
        message->msg_controllen = 0;
    return sendmsg(over, message, MSG_NOSIGNAL) == (ssize_t)length ? 0 : -1;
}

int fd_take(int over, char *text, size_t room)
{
    struct carrier carrier;
    struct msghdr *message = carrier_open(&carrier, text, room - 1);
    int fd = -1;
    ssize_t got = over < 0 ? -1 : recvmsg(over, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    text[got > 0 ? got : 0] = '\0';
    if (got > 0 && CMSG_FIRSTHDR(message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(message)), sizeof fd);
    return fd;
}

/* Move the descriptors to high numbers first, so that no dup2 overwrites another one. */
static int hand_over(struct handed *handed, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int from = handed[i].from;
        if (from < 0 && handed[i].to <= NULL_MOST)
            from = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (from >= 0 && (handed[i].from = fcntl(from, F_DUPFD_CLOEXEC, TO_MOST)) < 0)
            return -1;
    }
    for (size_t i = 0; i < count; i++)
        if (handed[i].from >= 0 && dup2(handed[i].from, handed[i].to) < 0)
            return -1;
    return 0;
}

void become(char **words, struct handed *handed, size_t count)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    if (hand_over(handed, count) == 0)
        execvp(words[0], words);
    int code = errno;
    say("cannot run %s: %s", words[0], strerror(code));
    _exit(code == ENOENT ? 127 : 126);
}
