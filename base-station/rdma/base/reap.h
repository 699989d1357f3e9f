/* Ending all descendants of this process. It must be a child subreaper, so that no descendant can
 * escape. */
#pragma once

#include <sys/types.h>

struct process {
    pid_t pid, parent;
    unsigned long long started; /* clock ticks since boot */
};

/* Signal this process, not another one that has got its pid since. Return 0, or -1 with errno. */
int process_signal(const struct process *one, int number);

/* Make this process the parent of its future orphaned descendants. Return 0, or -1 with errno. */
int reap_adopt(void);

/* Send SIGTERM to all descendants deeper than `depth` (1 = a child), wait up to `grace_ms`, then
 * send SIGKILL to all, until no child is left: return 0. Give up if no process could be signalled
 * for most of a second: return the pid of a process of another user, -1 if unknown. */
pid_t reap_all(int depth, int grace_ms);
