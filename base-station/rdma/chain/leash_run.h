/* One segment at work below a leash: its process, its descriptors, its appended file. */
#ifndef LEASH_RUN_H
#define LEASH_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "leash_line.h"

struct leash_run {
    int stdin_fd, stdout_fd; /* what the segment gets; -1 = /dev/null; not owned */
    int append_fd;           /* the file of ">>", locked; its descriptor is the lock */
    off_t append_bytes;      /* how long it was; -1 if it cannot be cut back */
    int announce_fd, status_fd;
    pid_t root; /* the outermost tool; 0 before it started */
};

/* Opens and locks the file of ">>". 0: have it; 1: someone else has the lock, or nobody
 * reads the FIFO, ask again; -1: `*why` names what failed. */
int leash_run_lock(struct leash_run *run, const struct leash_work *work, char **why);

/* Starts the segment in a process group of its own. 0, or -1 with errno. */
int leash_run_open(struct leash_run *run, const struct leash_work *work);

/* Cuts an appended file back unless `whole`, and closes. Nothing of it runs any more.
 * Returns 0, or -1 with errno when the file could not be cut back. */
int leash_run_close(struct leash_run *run, bool whole);

#endif
