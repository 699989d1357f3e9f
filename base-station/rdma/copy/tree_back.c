/* The way back: what the sink says goes to the source through a hop of its own, which is
 * joined by a Unix socket in the abstract name space to the one side or to the other:
 *
 *   rdcp --serve-source --back NAME  ->  rdcp --serve-sink  ->  rdcp --serve-answers NAME
 *   rdcp --serve-back NAME  ->  rdcp --serve-source  ->  rdcp --serve-sink --back NAME
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "descriptors.h"
#include "tree_sides.h"
#include "trouble.h"

enum { MEET_MS = 30000, AGAIN_MS = 5, PIECE = 64 << 10 };

static socklen_t address_of(struct sockaddr_un *address, const char *name)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "rdcp-%s",
                          name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Any user can connect to an abstract name, or take it first. */
static bool is_own(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           peer.uid == geteuid();
}

static int meet(const char *name)
{
    struct sockaddr_un address;
    socklen_t length = address_of(&address, name);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) < 0 ||
        listen(listener, 4) < 0) {
        fprintf(stderr, "rdcp: no way back: %m\n");
        return -1;
    }
    int fd = -1;
    for (int64_t end_ms = now_ms() + MEET_MS; fd < 0 && now_ms() < end_ms;) {
        struct pollfd polled = {listener, POLLIN, 0};
        poll(&polled, 1, 200);
        fd = polled.revents ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (fd >= 0 && !is_own(fd)) {
            close(fd);
            fd = -1;
        }
    }
    close(listener);
    return fd;
}

int tree_back(const char *name, bool answers)
{
    static char piece[PIECE];
    int fd = meet(name), from = answers ? STDIN_FILENO : fd;
    ssize_t got = -1;
    while (fd >= 0 && (got = read(from, piece, sizeof piece)) != 0) {
        if (got < 0 && errno != EINTR)
            break;
        for (ssize_t sent = 0, put; sent < got; sent += put > 0 ? put : 0)
            if ((put = write(answers ? fd : STDOUT_FILENO, piece + sent,
                             (size_t)(got - sent))) < 0 &&
                errno != EINTR)
                return 1;
    }
    shut(&fd);
    return got != 0;
}

int tree_back_dial(const char *name)
{
    struct sockaddr_un address;
    socklen_t length = address_of(&address, name);
    for (int64_t end_ms = now_ms() + MEET_MS; now_ms() < end_ms;) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&address, length) == 0 && is_own(fd))
            return fd;
        shut(&fd);
        poll(NULL, 0, AGAIN_MS);
    }
    fprintf(stderr, "rdcp: no way back within %d s\n", MEET_MS / 1000);
    return -1;
}
