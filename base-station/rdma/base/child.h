/* Command that produces or consumes the stream, in its own process group. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "error.h"

/* Reason why a command in its own process group is stopped by SIGTTIN or SIGTTOU. */
#define CHILD_ASKS "it asks at the terminal, which is not its own here " \
                   "(sudo: run sudo -v before)"

enum child_side { CHILD_PRODUCER, CHILD_CONSUMER };

struct child {
    enum child_side side;
    const char *name; /* command name; not owned */
    pid_t pid;   /* 0 = not running */
    int pid_fd;  /* readable after exit; -1 once the exit is seen, or if unsupported */
    int fd;      /* our end of the command's pipe; -1 once closed */
    int status;  /* exit status as in a shell; -1 while it runs */
    int status_fd; /* receives the status of an exit we did not request; -1 */
    bool told;   /* asked to end */
    int stopped; /* stop signal of a terminal; 0 = not stopped */
    bool whole;  /* stream complete: its background processes may stay */
    pid_t keeper;
    int keeper_fd;
};

void child_init(struct child *child);

/* Start the command. A consumer gets a keeper: a process that also holds the pipe. If this process
 * is killed, the keeper ends the consumer before the consumer can read an end of file. */
int child_open(struct child *child, char **words, enum child_side side, struct error *error);

/* Wait for the command to exit; `status` is set afterwards. */
bool child_wait(struct child *child, int limit_ms);

/* Return -1 with an error if the command failed or was stopped. Return 0 otherwise, also if no
 * command was started. */
int child_check(struct child *child, struct error *error);

/* Let the consumer see the end of the stream, because the stream is complete. */
void child_let_end(struct child *child);

/* Signal the command's process group, unless the command is done. Return 0, or -1 if no process of
 * the group may be signalled. */
int child_signal(struct child *child, int number);

/* End the whole process group: SIGTERM, then SIGKILL a second later. Background processes of a
 * command that is done are kept. A process that may not be signalled (sudo) is named in a message
 * and left after a second. The pipe stays open, for the thread that may be using it. */
void child_end(struct child *child);

/* child_end, then close the pipe. */
void child_close(struct child *child);
