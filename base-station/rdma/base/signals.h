/* SIGINT, SIGTERM and SIGHUP end this process in order: they are blocked, and whoever
 * waits for something waits for them too. What is ignored, as by nohup, stays ignored. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>

#include "trouble.h"

/* Adds one to those to block, unless it is ignored: blocked, it would be heard all the
 * same. */
void signals_add(sigset_t *set, int number);

/* Blocks them. A descriptor that shows them, or -1; the same at the next call. */
int signals_open(void);

/* One that came is a trouble: -1. 0: there was none. */
int signals_take(struct trouble *trouble);

/* Is it a signal that ended what was tried? */
static inline bool signalled(const struct trouble *trouble)
{
    return trouble->status > 128;
}

/* Waits for one of `polled` until `end_ms`. How many are ready, 0: none in time;
 * -1 with a trouble: a signal came, if they are blocked at all. */
int signals_wait(struct pollfd *polled, int count, int64_t end_ms,
                 struct trouble *trouble);

#endif
