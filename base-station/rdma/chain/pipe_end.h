/* One end of rdpipe's chain: its agent, over SSH or local, and the state of its segment. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "bytes.h"
#include "agent_protocol.h"
#include "exit_status.h"

struct pipe_end {
    /* Description; host and label are not owned. */
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
    int64_t heard_ms;
    bool greeted, running, done; /* done: its output has ended */
    bool ahead;                  /* its source runs, its sender's hop is not connected */
    bool silent;                 /* given up after a time-out */

    /* Messages received. */
    char *announcement, *note;
    struct end_status *said; /* not owned */
};

struct pipe_settings;

/* Starts the agent. 0, or -1 with errno. */
int pipe_end_open(struct pipe_end *end, const struct pipe_settings *settings,
                  int stdin_fd, int stdout_fd);

/* Queue a `run` frame, a beat, or a `via SSH` frame: see agent_protocol.h. */
void pipe_end_run(struct pipe_end *end);
void pipe_end_beat(struct pipe_end *end);
void pipe_end_via_ssh(struct pipe_end *end);

void pipe_end_flush(struct pipe_end *end);           /* sends the queue */
void pipe_end_let_go(struct pipe_end *end);          /* the agent ends all below it */

/* Read the available input. Then pipe_end_next() returns its frames until it returns false. */
void pipe_end_listen(struct pipe_end *end, int64_t now_ms);
bool pipe_end_next(struct pipe_end *end, struct agent_said *said);

/* Queue a frame for the neighbouring end. */
void pipe_end_pass_on(struct pipe_end *end, const struct agent_said *frame);

/*
 * Send SIGTERM to an end that is still running. An agent ends its processes, and an ssh that asks
 * for a password restores the terminal's echo.
 */
void pipe_end_stop(struct pipe_end *end);

/*
 * Kill the remaining processes of a stopped end and wait for them. Return 0, or -1 if they do not
 * end.
 */
int pipe_end_close(struct pipe_end *end);
