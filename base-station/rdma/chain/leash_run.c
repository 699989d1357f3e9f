/* One segment at work below a leash: see leash_run.h. */
#include "leash_run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "leash_work.h"
#include "quote.h"

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

int leash_run_lock(struct leash_run *run, const struct leash_work *work, char **why)
{
    if (work->middle != LEASH_APPEND)
        return 0;
    char *path = leash_work_file(work->middle_words.word[0]);
    if (!path)
        return -1;
    int result = run->append_fd < 0 ? append_open(run, path) : 0;
    struct stat state;
    if (result == 0 && run->append_bytes >= 0) {
        if (flock(run->append_fd, LOCK_EX | LOCK_NB) < 0)
            result = errno == EWOULDBLOCK || errno == EINTR ? 1 : -1;
        else if ((result = fstat(run->append_fd, &state)) == 0)
            run->append_bytes = state.st_size;
    }
    if (result < 0 && asprintf(why, "%s: %s", path, strerror(errno)) < 0)
        *why = NULL;
    free(path);
    return result;
}

/* A key of 32 bytes goes to a tool as 64 digits, through a pipe that holds them all. */
static int key_pipe(const unsigned char *key)
{
    int ends[2];
    struct bytes digits = {0};
    if (hex_add(&digits, key, LEASH_KEY_BYTES) < 0 || pipe2(ends, O_CLOEXEC) < 0) {
        bytes_close(&digits);
        return -1;
    }
    ssize_t sent = write(ends[1], digits.data, digits.length);
    bool whole = sent == (ssize_t)digits.length;
    explicit_bzero(digits.data, digits.length);
    bytes_close(&digits);
    close(ends[1]);
    if (whole)
        return ends[0];
    close(ends[0]);
    return -1;
}

struct handed {
    int from, to;
};

/* In the child: puts each descriptor where it belongs. The sources lie above every
 * target (they are duplicated to 20 and up first), so none overwrites another. */
static int hand_over(struct handed *handed, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (handed[i].from >= 0 &&
            (handed[i].from = fcntl(handed[i].from, F_DUPFD_CLOEXEC, 20)) < 0)
            return -1;
    for (size_t i = 0; i < count; i++) {
        int from = handed[i].from;
        if (from < 0 && handed[i].to < 2)
            from = open("/dev/null", handed[i].to ? O_WRONLY : O_RDONLY);
        if (from < 0)
            continue;
        if (from != handed[i].to && dup2(from, handed[i].to) < 0)
            return -1;
    }
    return 0;
}

static void child(struct handed *handed, size_t count, char **words)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    if (hand_over(handed, count) == 0)
        execvp(words[0], words);
    fprintf(stderr, "rdpipe: %s: %s\n", words[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

static int spawn(struct leash_run *run, const struct leash_work *work, char **words,
                 int announce, int status)
{
    int out = run->append_fd >= 0 ? run->append_fd : run->stdout_fd;
    struct handed handed[] = {
        {run->stdin_fd, 0},
        {out, 1},
        {work->has_in ? key_pipe(work->key_in) : -1, LEASH_KEY_IN_FD},
        {announce, LEASH_ANNOUNCE_FD},
        {work->has_out ? key_pipe(work->key_out) : -1, LEASH_KEY_OUT_FD},
        {status, LEASH_STATUS_FD},
    };
    size_t count = sizeof handed / sizeof *handed;
    run->root = fork();
    if (run->root == 0)
        child(handed, count, words);
    int error = errno;
    for (size_t i = 2; i < count; i++)
        if (handed[i].from >= 0)
            close(handed[i].from);
    errno = error;
    if (run->root < 0) {
        run->root = 0;
        return -1;
    }
    setpgid(run->root, run->root);
    return 0;
}

int leash_run_open(struct leash_run *run, const struct leash_work *work)
{
    char self[PATH_MAX];
    if (leash_work_self(self) < 0)
        return -1;
    int announce[2], status[2];
    if (pipe2(announce, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    run->announce_fd = announce[0];
    if (pipe2(status, O_CLOEXEC | O_NONBLOCK) < 0) {
        close(announce[1]);
        return -1;
    }
    run->status_fd = status[0];
    struct words words;
    int result = leash_work_open(&words, work, self);
    if (result == 0)
        result = spawn(run, work, words.word, announce[1], status[1]);
    words_close(&words);
    return result;
}

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int leash_run_close(struct leash_run *run, bool whole)
{
    int result = 0;
    struct stat state;
    if (run->append_fd >= 0 && !whole && run->append_bytes >= 0 &&
        fstat(run->append_fd, &state) == 0 && state.st_size > run->append_bytes)
        result = ftruncate(run->append_fd, run->append_bytes);
    int error = errno;
    shut(&run->append_fd);
    shut(&run->status_fd);
    shut(&run->announce_fd);
    errno = error;
    return result;
}
