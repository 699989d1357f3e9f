/* Ending everything below this process: see reap.h. */
#include "reap.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

/* The parent of `pid`, -1 if it is gone or a zombie. proc(5): the name may hold ")". */
static pid_t parent_of(const char *pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *after = strrchr(text, ')');
    char state;
    int parent;
    if (!after || sscanf(after + 1, " %c %d", &state, &parent) != 2 || state == 'Z')
        return -1;
    return parent;
}

static void processes_open(struct processes *all)
{
    *all = (struct processes){0};
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        int pid = atoi(entry->d_name);
        pid_t parent = pid > 0 ? parent_of(entry->d_name) : -1;
        if (parent < 0)
            continue;
        struct process *more = reallocarray(all->row, all->count + 1, sizeof *more);
        if (!more)
            break;
        all->row = more;
        more[all->count++] = (struct process){pid, parent, 0};
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

int reap_signal(int signal, int depth)
{
    struct processes all;
    int told = 0;
    processes_open(&all);
    for (int level = processes_descend(&all); level > depth; level--)
        for (size_t i = 0; i < all.count; i++)
            if (all.row[i].depth == level && kill(all.row[i].pid, signal) == 0)
                told++;
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

void reap_all(int depth, int grace_ms)
{
    if (!children_left())
        return;
    if (grace_ms > 0 && reap_signal(SIGTERM, depth) > 0)
        for (int waited = 0; waited < grace_ms && reap_signal(0, depth) > 0; waited += 10)
            nap_ms(10);
    while (children_left()) {
        reap_signal(SIGKILL, 0);
        nap_ms(2);
    }
}
