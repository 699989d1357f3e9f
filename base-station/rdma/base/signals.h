/* Orderly shutdown by SIGINT, SIGTERM and SIGHUP: the signals are blocked, and every wait also
 * waits for them. A signal that is ignored, for example by nohup, stays ignored. */
#pragma once

#include <poll.h>
#include <stdbool.h>

#include "error.h"

/* Block the signals. From now on a signal is an error of signals_wait and does not end the process.
 * Return 0, or -1 with an error. */
int signals_open(struct error *error);

/* Block the signals that end a program, and SIGCHLD, and return a new descriptor for them; -1 with
 * errno. */
int signals_watch(void);

/* Return the number of the received signal; 0: no signal, or SIGCHLD. */
int signals_number(int fd);

/* Return true if the signal has ended, or is about to end, the operation of signals_wait. */
bool signals_reached(int number);

/* Convert a status of waitpid(2) to an exit status as in a shell. */
int status_of(int wait_status);

/* Return true if a signal ended the operation. */
static inline bool signalled(const struct error *error)
{
    return error->status > 128;
}

enum { SIGNALS_POLLED_MOST = 32 };

/* Wait for one of `polled` until `end_ms`. Return how many are ready; 0: time-out; -1 with an
 * error: a signal arrived (only if signals are blocked). */
int signals_wait(struct pollfd *polled, int count, int64_t end_ms, struct error *error);
