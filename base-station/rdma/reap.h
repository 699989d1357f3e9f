/* Ending everything below this process. It has to be a child subreaper, so that nothing
 * below it can leave. */
#ifndef REAP_H
#define REAP_H

/* From now on orphans below this process become its children. 0, or -1 with errno. */
int reap_adopt(void);

/* Sends `signal` to every descendant that lies deeper than `depth` (1 = a child), the
 * deepest first: a reader is told before the end of what it reads. Returns how many. */
int reap_signal(int signal, int depth);

/* SIGTERM to all that is deeper than `depth`, up to `grace_ms` for it, then SIGKILL to
 * everything, until no child is left. */
void reap_all(int depth, int grace_ms);

#endif
