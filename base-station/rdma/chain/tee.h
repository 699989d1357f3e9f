/* Several targets of one pipe, or of one copy: a chain for each, in a process of its own.
 * Of a pipe this process passes on what it reads once:
 *
 *   what is before ---> a window of 64 MiB ---> target 1
 *                                        `----> target 2 ...
 *
 * A target that left, failed, or lies behind by a window while another waits, is let go;
 * the others go on. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "pipe.h"

/* Cuts "b:cmd|c:cmd" at each "|" behind which a host and ":" stand, though not within
 * quotes if it is for a `shell`. How many there are. */
size_t tee_split(struct words *into, const char *text, bool shell);

struct tee_target {
    const char *label;
    pid_t pid;
    int fd; /* into it; -1: it gets no more */
    uint64_t sent;
    int status;
    bool slow; /* that is why it was let go */
};

/* fork(2) of one that ends with this process, and its end. */
pid_t tee_fork(void);
_Noreturn void tee_exit(int status);

/* Waits for all, and ends them if a signal ends this process. The worst status; 128 and
 * its number after a signal. */
int tee_wait(struct tee_target *targets, size_t count);

/* Says of each how it went, if that was not well for all. */
void tee_tell(const char *program, const struct tee_target *targets, size_t count);

/* The segments before the targets, of which there may be none, and the targets. If
 * `waits`, all go at the pace of the slowest. An exit status, as pipe_run(). */
int tee_run(const struct pipe_settings *settings, const struct pipe_segment *before,
            size_t before_count, const struct pipe_segment *targets, size_t count,
            bool waits);
