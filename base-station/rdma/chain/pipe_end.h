/* One end of rdpipe's chain: its agent, over SSH or local, and the state of its segment. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "bytes.h"
#include "agent_protocol.h"

struct end_status {
    bool command;       /* a command, not a file or this process's own stream */
    int command_status; /* -1: it was ended, or never started */
    int status;         /* of the tools around it; -1: unknown, the agent was lost */
    int order;          /* 1 for the first failed end, and so on; 0: no failure of its own */
};

struct pipe_settings;

struct pipe_end {
    /* Description; settings, host and label are not owned. */
    const struct pipe_settings *settings;
    const char *host;  /* for ssh; NULL = this machine */
    const char *label; /* as the user wrote it */
    int number;        /* of the segment, from 1; 0 = rdpipe's own stdin or stdout */
    struct agent_work work; /* its options are owned */
    char key_out[AGENT_KEY + 1];
    char *port, *addresses;     /* target of the hop out */

    /* Its agent. */
    pid_t pid;
    int control_fd, answer_fd; /* -1 once closed */
    struct bytes control, answers;
    struct bytes login;   /* last output of the login shell before the greeting */
    size_t login_bytes;   /* all of it */
    int64_t opened_ms, received_ms;
    bool greeted, running, done; /* done: its output has ended */
    bool ahead;                  /* its source runs, its sender's hop is not connected */
    bool given_up;               /* before its output ended: its exit status means nothing */
    int silent_ms;               /* given up after so long without an answer; 0: not */

    /* Messages received. */
    char *announcement, *note;
    struct end_status *status; /* not owned */
};

/* Start the agent. Return 0, or -1 with errno. */
int pipe_end_open(struct pipe_end *end, int stdin_fd, int stdout_fd);

/* Start a source early, so that it walks its trees while the sessions start. */
void pipe_end_run_ahead(struct pipe_end *end);

/* Run the segment. The next end, if any, has announced its address: the data goes straight to it
 * or, if asked for, through SSH. */
void pipe_end_run(struct pipe_end *end);

/* Lead the hop through SSH after this end could not reach the next one. */
void pipe_end_unreached(struct pipe_end *end);

/* Give up an end that is silent for too long. A `patient` run gives ssh some minutes to connect and
 * to ask for a password. */
void pipe_end_mind_time(struct pipe_end *end, bool patient, int64_t now_ms);

void pipe_end_beat(struct pipe_end *end);

void pipe_end_flush(struct pipe_end *end);           /* sends the queue */
void pipe_end_release(struct pipe_end *end);          /* the agent ends all below it */

/* Read the available input. Then pipe_end_next() returns its frames until it returns false. */
void pipe_end_read(struct pipe_end *end, int64_t now_ms);
bool pipe_end_next(struct pipe_end *end, struct agent_frame *frame);

/* Queue a frame for the neighbouring end. */
void pipe_end_pass_on(struct pipe_end *end, const struct agent_frame *frame);

/* Send SIGTERM to an end that is still running. An agent ends its processes, and an ssh that asks
 * for a password restores the terminal's echo. */
void pipe_end_stop(struct pipe_end *end);

/* Kill the remaining processes of a stopped end and wait for them. Return 0, or -1 if they do not
 * end. */
int pipe_end_close(struct pipe_end *end);

/* --- exit status of a chain, from the status of its ends --- */

/* Give the status of SIGPIPE to each command that its sender ended because the reader had left
 * successfully. Call this first. */
void exit_status_settle(struct end_status *ends, size_t count);

/* True if this end's failure counts. A failure does not count if the next end succeeded: a command
 * reads the end of its input only after all of it has arrived, and is ended otherwise. Exit status
 * 0 of a reader therefore means that it had all the input it needed. */
bool exit_status_failed(const struct end_status *ends, size_t count, size_t which);

/* Return the status of the last command that failed by itself. If all commands succeeded, return
 * the status of the end that failed first, or 0. A command that failed because its reader left has
 * lower priority than a failed file as that reader. Store the index of the end in `*which`. */
int exit_status(const struct end_status *ends, size_t count, size_t *which);
