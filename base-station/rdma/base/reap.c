/* Ending all descendants of this process: see reap.h. */
#include "reap.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "descriptors.h"
#include "error.h"

enum { VAIN_MS = 700 };

struct processes {
    struct process *row;
    size_t count;
    pid_t left; /* of another user; 0 = no process */
};

int reap_adopt(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* Read one process. Return false if it is gone or a zombie. The name may contain ")", see
 * proc(5). */
static bool look_at(struct process *one)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)one->pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *after = strrchr(text, ')');
    char state;
    if (!after || sscanf(after + 1, " %c %d" /* 17 fields */ "%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s"
                                    "%*s%*s%*s%*s%*s%*s%*s %llu",
                         &state, &one->parent, &one->started) != 3)
        return false;
    return state != 'Z';
}

static void processes_open(struct processes *all)
{
    *all = (struct processes){0};
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        struct process one = {.pid = atoi(entry->d_name)};
        if (one.pid <= 0 || !look_at(&one))
            continue;
        struct process *more = reallocarray(all->row, all->count + 1, sizeof *more);
        if (!more)
            break;
        all->row = more;
        more[all->count++] = one;
    }
    if (folder)
        closedir(folder);
}

int process_signal(const struct process *one, int number)
{
    int result = -1, fd = (int)syscall(SYS_pidfd_open, one->pid, 0);
    struct process now = {.pid = one->pid};
    if (fd < 0 && errno == ENOSYS && one->parent == getpid()) /* valgrind */
        return kill(one->pid, number); /* a child keeps its pid until it is reaped */
    if (fd < 0)
        return -1;
    errno = ESRCH;
    if (look_at(&now) && now.started == one->started)
        result = (int)syscall(SYS_pidfd_send_signal, fd, number, NULL, 0);
    shut(&fd);
    return result;
}

/* Signal all descendants of `pid` deeper than `depth`. Children are signalled before their parent,
 * so a reader is signalled before the end of its input. Return the number signalled. */
static int signal_below(struct processes *all, pid_t pid, int number, int depth)
{
    int told = 0;
    for (size_t i = 0; i < all->count; i++) {
        struct process one = all->row[i];
        if (one.parent != pid)
            continue;
        all->row[i].parent = 0; /* once each: the rows are not an atomic snapshot */
        told += signal_below(all, one.pid, number, depth - 1);
        int sent = process_signal(&one, depth > 0 ? 0 : number);
        if (sent < 0 && errno == EPERM)
            all->left = one.pid;
        told += depth <= 0 && sent == 0;
    }
    return told;
}

static int reap_signal(int number, int depth, pid_t *left)
{
    struct processes all;
    processes_open(&all);
    int told = signal_below(&all, getpid(), number, depth);
    *left = all.left;
    free(all.row);
    return told;
}

static void nap_ms(int ms)
{
    struct timespec nap = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&nap, NULL);
}

/* Reap the children that have exited. Return true if a child is left. */
static int children_left(void)
{
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0 && errno != EINTR)
            return 0;
        if (pid == 0)
            return 1;
    }
}

pid_t reap_all(int depth, int grace_ms)
{
    pid_t left = 0;
    if (!children_left())
        return 0;
    int64_t end_ms = now_ms() + grace_ms;
    if (grace_ms > 0 && reap_signal(SIGTERM, depth, &left) > 0)
        while (now_ms() < end_ms && reap_signal(0, depth, &left) > 0)
            nap_ms(10);
    int64_t told_ms = now_ms();
    for (int ms = 2; children_left(); ms += ms < 100 ? 2 : 0) {
        if (reap_signal(SIGKILL, 0, &left) > 0)
            told_ms = now_ms();
        else if (now_ms() - told_ms >= VAIN_MS) /* a scan of /proc may take that long */
            return !children_left() ? 0 : left ? left : -1;
        nap_ms(ms);
    }
    return 0;
}
