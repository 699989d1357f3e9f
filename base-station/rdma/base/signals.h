/* SIGINT, SIGTERM and SIGHUP end this process in order: they are blocked, and whoever
 * waits for something waits for them too. What is ignored, as by nohup, stays ignored. */
#pragma once

#include <poll.h>
#include <stdbool.h>

#include "trouble.h"

/* Blocks them: from now on one is a trouble of signals_wait, and does not end what is
 * waited for by itself. 0, or -1 with a trouble. */
int signals_open(struct trouble *trouble);

/* What ends a program, and SIGCHLD, as a descriptor, of which each call gives another; -1
 * with errno. They are blocked from then on. */
int signals_watch(void);

/* The number of the one that came, 0: none, or a child's end. */
int signals_number(int fd);

/* What waitpid(2) said of a child, as a shell says it. */
int status_of(int wait_status);

/* Is it a signal that ended what was tried? */
static inline bool signalled(const struct trouble *trouble)
{
    return trouble->status > 128;
}

enum { SIGNALS_POLLED_MOST = 32 };

/* Waits for one of `polled` until `end_ms`. How many are ready, 0: none in time;
 * -1 with a trouble: a signal came, if they are blocked at all. */
int signals_wait(struct pollfd *polled, int count, int64_t end_ms,
                 struct trouble *trouble);
