/* What a chain's ends said, as one exit status. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct verdict_end {
    bool command;       /* a command, not a file or this process's own stream */
    int command_status; /* -1: it did not end by itself, or never began */
    int status;         /* of the tools around it; -1: unknown, its leash was lost */
    int order;          /* 1 for the first that failed, and so on; 0: did not, or was let
                           go because another had */
};

/* A command that its sender ended because its reader had left, content, gets the status
 * that SIGPIPE would have given it. To be called first. */
void verdict_settle(struct verdict_end *ends, size_t count);

/* Did this end fail in a way that counts? What feeds a reader that was content does not:
 * a command sees the end of its input only when all of it has arrived, and is ended
 * before that otherwise, so its exit status 0 says that it had what it wanted. */
bool verdict_failed(const struct verdict_end *ends, size_t count, size_t which);

/* The status of the last command that failed by itself, else of the end that failed
 * first, else 0. A command that found its reader gone gives way to a file that failed
 * as a reader. `*which` is that end. */
int verdict(const struct verdict_end *ends, size_t count, size_t *which);
