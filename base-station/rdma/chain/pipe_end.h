/* One end of rdpipe's chain: a leash, over SSH or on this machine, and what is known of
 * the segment it runs. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "bytes.h"
#include "leash_work.h"
#include "verdict.h"

struct pipe_end {
    /* What it is; host and label are not owned. */
    const char *host;  /* for ssh; NULL = this machine */
    const char *label; /* as the user wrote it */
    int number;        /* of the segment, from 1; 0 = rdpipe's own stdin or stdout */
    struct leash_work work; /* its options are owned */
    char key_out[LEASH_KEY + 1];
    char *port, *addresses;     /* where the hop out of it goes */
    bool typed; /* its stdin is what is typed at the terminal here */
    bool type_over;
    size_t may; /* so much of it now */

    /* Its leash. */
    pid_t pid;
    int control_fd, answer_fd; /* -1 once closed */
    struct bytes control, answers;
    int64_t heard_ms;
    bool greeted, running, done; /* done: nothing more will come */
    bool ahead;                  /* its source runs, though not its sender's hop */
    bool silent;                 /* it was given up for its silence */

    /* What it said. */
    char *announcement, *note;
    struct verdict_end *said; /* not owned */
};

struct pipe_settings;

/* Starts the leash. 0, or -1 with errno. */
int pipe_end_open(struct pipe_end *end, const struct pipe_settings *settings,
                  int stdin_fd, int stdout_fd);

/* Queues what it is to run, and a beat, and what its other end dials: see leash_work.h. */
void pipe_end_run(struct pipe_end *end);
void pipe_end_beat(struct pipe_end *end);
void pipe_end_dial(struct pipe_end *end, const struct words *to);

/* Reads from the terminal. Without the frame that is the end nothing takes what was typed
 * for whole: its leash ends the segment first. */
void pipe_end_type(struct pipe_end *end);

void pipe_end_flush(struct pipe_end *end);           /* sends what is queued */
void pipe_end_let_go(struct pipe_end *end);          /* its leash ends everything */

/* Reads what came; then what that says, one after the other, until it is false. */
void pipe_end_listen(struct pipe_end *end, int64_t now_ms);
bool pipe_end_next(struct pipe_end *end, struct leash_said *said);

/* Queues what is for the end beside it in the row. */
void pipe_end_pass_on(struct pipe_end *end, const struct leash_said *frame);

/* SIGTERM, if it goes on: a leash ends what is below it, and an ssh that asks for a
 * password switches the echo on again. */
void pipe_end_stop(struct pipe_end *end);

/* Of one that was stopped: kills what is left, and waits. 0; -1: it does not end. */
int pipe_end_close(struct pipe_end *end);
