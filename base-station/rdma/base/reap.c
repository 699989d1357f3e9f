/* Ending everything below this process: see reap.h. */
#include "reap.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "trouble.h"

enum { VAIN_MS = 700 };

struct process {
    pid_t pid, parent;
    int depth; /* 0 = not known to be below us */
};

struct processes {
    struct process *row;
    size_t count;
};

int reap_adopt(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* False if it is gone or a zombie. proc(5): the name may hold ")". */
static bool look_at(struct process *one, const char *pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *after = strrchr(text, ')');
    char state;
    if (!after || sscanf(after + 1, " %c %d", &state, &one->parent) != 2)
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
        if (one.pid <= 0 || !look_at(&one, entry->d_name))
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

/* Gives each descendant its depth; returns the greatest. */
static int processes_descend(struct processes *all)
{
    int deepest = 0;
    for (int found = 1; found;) {
        found = 0;
        for (size_t i = 0; i < all->count; i++) {
            struct process *one = &all->row[i];
            if (one->depth)
                continue;
            int depth = one->parent == getpid() ? 1 : 0;
            for (size_t j = 0; !depth && j < all->count; j++)
                if (all->row[j].pid == one->parent && all->row[j].depth)
                    depth = all->row[j].depth + 1;
            one->depth = depth;
            found |= depth > 0;
            deepest = depth > deepest ? depth : deepest;
        }
    }
    return deepest;
}

/* A descendant that this user may not signal; 0 = there is none. */
static pid_t another_users(const struct processes *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->row[i].depth && kill(all->row[i].pid, 0) < 0 && errno == EPERM)
            return all->row[i].pid;
    return 0;
}

/* Sends `number` to every descendant that lies deeper than `depth`, the deepest first: a
 * reader is told before the end of what it reads. Returns how many were told. */
static int reap_signal(int number, int depth, pid_t *left)
{
    struct processes all;
    int told = 0;
    processes_open(&all);
    int level = processes_descend(&all);
    *left = another_users(&all);
    for (; level > depth; level--)
        for (size_t i = 0; i < all.count; i++) {
            const struct process *one = &all.row[i];
            if (one->depth == level && kill(one->pid, number) == 0)
                told++;
        }
    free(all.row);
    return told;
}

static void nap_ms(int ms)
{
    struct timespec nap = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&nap, NULL);
}

/* Takes leave of the children that ended; is one left? */
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
        else if (now_ms() - told_ms >= VAIN_MS)
            return left ? left : -1;
        nap_ms(ms);
    }
    return 0;
}
