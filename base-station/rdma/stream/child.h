/* The command that produces or consumes the stream, in a process group of its own. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "trouble.h"

/* Why a command in a process group of its own is stopped by SIGTTIN or SIGTTOU. */
#define CHILD_ASKS "it asks at the terminal, which is not its own here " \
                   "(sudo: run sudo -v before)"

enum child_side { CHILD_PRODUCER, CHILD_CONSUMER };

struct child {
    enum child_side side;
    const char *name; /* of the command; not owned */
    pid_t pid;   /* 0 = there is none */
    int pid_fd;  /* readable once it ended; -1 after that was seen, or without */
    int fd;      /* this end of its pipe; -1 once closed */
    int status;  /* as a shell says it; -1 while it runs */
    int status_fd; /* is told of that, but of an end that was asked for; -1 */
    bool told;   /* it was asked to end */
    int stopped; /* the signal by which a terminal stopped it; 0 = none did */
    bool whole;  /* its stream is: what it leaves in the background may stay */
    pid_t keeper;
    int keeper_fd;
};

void child_init(struct child *child);

/* Starts it. A consumer gets a keeper: a process that holds the pipe too and, should
 * this one be killed, ends the consumer before it could see an end of file. */
int child_open(struct child *child, char **words, enum child_side side,
               struct trouble *trouble);

/* Waits for its end: then `status` is known. */
bool child_wait(struct child *child, int limit_ms);

/* -1 with a trouble if it has ended, and not well, or was stopped. 0 also if there is
 * none. */
int child_check(struct child *child, struct trouble *trouble);

/* The stream is whole: the consumer may see its end. */
void child_let_end(struct child *child);

/* To its group, unless it is done. 0; -1: nobody of them may be signalled. */
int child_signal(struct child *child, int number);

/* Ends all of it: SIGTERM, a second later SIGKILL; what a command that is done has left
 * in the background stays. What may not be signalled, as sudo, is named and left after a
 * second. Its pipe stays, for the thread that may use it. */
void child_end(struct child *child);

/* The same, and closes the pipe. */
void child_close(struct child *child);
