/* Ending everything below this process. It has to be a child subreaper, so that nothing
 * below it can leave. */
#pragma once

#include <sys/types.h>

/* From now on orphans below this process become its children. 0, or -1 with errno. */
int reap_adopt(void);

/* SIGTERM to all that is deeper than `depth` (1 = a child), up to `grace_ms` for it, then
 * SIGKILL to everything, until no child is left: 0. When for most of a second nothing
 * could be signalled, it gives up: the number of one that runs as another user, -1 if that
 * is not known. */
pid_t reap_all(int depth, int grace_ms);
