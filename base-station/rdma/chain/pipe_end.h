/* One end of rdpipe's chain: a leash, over SSH or on this machine, and what is known of
 * the segment it runs. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "bytes.h"
#include "leash_work.h"

struct pipe_end {
    /* What it is; not owned. */
    const char *host;  /* for ssh; NULL = this machine */
    const char *label; /* as the user wrote it */
    int number;        /* of the segment, from 1; 0 = rdpipe's own stdin or stdout */
    enum leash_middle middle;
    bool shell; /* see pipe.h */
    int hop;    /* of the one into it, from 1 */
    const struct words *words;
    bool has_in, has_out;
    bool typed; /* its stdin is what is typed at the terminal here */
    bool type_over;
    size_t may; /* so much of it now */
    char key_in[LEASH_KEY + 1], key_out[LEASH_KEY + 1];

    /* Its leash. */
    pid_t pid;
    int control_fd, answer_fd; /* -1 once closed */
    struct bytes control, answers;
    int64_t heard_ms;
    bool greeted, running, done; /* done: nothing more will come */
    bool silent;                 /* it was given up for its silence */

    /* What it said. */
    char *announcement, *note;
    char *awaits;    /* an announcement, until it was passed on */
    bool unreached_in, unreached_out, reached;
    enum leash_way way;  /* of the hop out of it */
    int command_status, status; /* -1 = not known */
    int order;                  /* among the ends that failed, from 1; 0 = did not */
};

struct pipe_settings;

/* Starts the leash and queues its first lines. 0, or -1 with errno. */
int pipe_end_open(struct pipe_end *end, const struct pipe_settings *settings,
                  int stdin_fd, int stdout_fd);

/* Queues the last lines: where the hop out of it goes (NULL if there is none), and run. */
void pipe_end_run(struct pipe_end *end, const char *port, const char *transports,
                  const char *addresses);

/* Queues what else is known of the way of the hop between two ends. */
void pipe_end_try(struct pipe_end *end, enum leash_way way, const char *token,
                  const char *ports);
int pipe_end_dial(struct pipe_end *end, const char *token, const char *awaits,
                  const char *addresses);
int pipe_end_tunnel(struct pipe_end *end);

/* Reads from the terminal. Without the frame that is the end nothing takes what was typed
 * for whole: its leash ends the segment first. */
void pipe_end_type(struct pipe_end *end);

void pipe_end_beat(struct pipe_end *end);
void pipe_end_flush(struct pipe_end *end);           /* sends what is queued */
/* Reads what came; what is for the ends beside it in the row is queued for them. */
void pipe_end_listen(struct pipe_end *end, int64_t now_ms);
void pipe_end_let_go(struct pipe_end *end);          /* its leash ends everything */

/* SIGTERM, if it goes on: a leash ends what is below it, and an ssh that asks for a
 * password switches the echo on again. */
void pipe_end_stop(struct pipe_end *end);

/* Of one that was stopped: kills what is left, and waits. 0; -1: it does not end. */
int pipe_end_close(struct pipe_end *end);
