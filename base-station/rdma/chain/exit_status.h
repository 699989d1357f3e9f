/* Exit status of a chain, computed from its ends. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct end_status {
    bool command;       /* a command, not a file or this process's own stream */
    int command_status; /* -1: it was ended, or never started */
    int status;         /* of the tools around it; -1: unknown, the agent was lost */
    int order;          /* 1 for the first failed end, and so on; 0: no failure of its own */
};

/*
 * Give the status of SIGPIPE to each command that its sender ended because the reader had left
 * successfully. Call this first.
 */
void exit_status_settle(struct end_status *ends, size_t count);

/*
 * True if this end's failure counts. A failure does not count if the next end succeeded: a command
 * reads the end of its input only after all of it has arrived, and is ended otherwise. Exit status
 * 0 of a reader therefore means that it had all the input it needed.
 */
bool exit_status_failed(const struct end_status *ends, size_t count, size_t which);

/*
 * Return the status of the last command that failed by itself. If all commands succeeded, return
 * the status of the end that failed first, or 0. A command that failed because its reader left has
 * lower priority than a failed file as that reader. Store the index of the end in `*which`.
 */
int exit_status(const struct end_status *ends, size_t count, size_t *which);
