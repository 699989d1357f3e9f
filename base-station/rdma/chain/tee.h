/*
 * Several targets of one pipe or of one copy: a chain for each, in its own process. For a pipe,
 * this process reads the input once and forwards it:
 *
 *   segments before ---> a window of 64 MiB ---> target 1
 *                                          `---> target 2 ...
 *
 * A target is dropped if it exits, fails, or lags by a full window while another target waits. The
 * others continue.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "pipe.h"

/*
 * Split "b:cmd|c:cmd" at each "|" that precedes a host and ":". For a `shell`, ignore "|" within
 * quotes. Return the number of parts.
 */
size_t tee_split(struct words *into, const char *text, bool shell);

struct tee_target {
    const char *label;
    pid_t pid;
    int fd; /* input of the target; -1: closed */
    uint64_t sent;
    int status;
    bool slow; /* dropped because it was too slow */
};

/* Fork a child that ends with this process, and exit from that child. */
pid_t tee_fork(void);
_Noreturn void tee_exit(int status);

/*
 * Wait for all targets, and end them if a signal ends this process. Return the worst status, or 128
 * plus the signal's number.
 */
int tee_wait(struct tee_target *targets, size_t count);

/* Print the result of each target unless all succeeded. */
void tee_tell(const char *program, const struct tee_target *targets, size_t count);

/*
 * Run the segments before the targets (possibly zero) and the targets. With `waits`, all run at the
 * pace of the slowest. Return an exit status as pipe_run() does.
 */
int tee_run(const struct pipe_settings *settings, const struct pipe_segment *before,
            size_t before_count, const struct pipe_segment *targets, size_t count,
            bool waits);
