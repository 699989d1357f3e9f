/* Runs a chain of segments on one or more machines, a hop between each two. rdpipe and
 * rdcp are both this. */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "leash_work.h"

struct pipe_settings {
    const char *program;        /* for messages */
    const char *ssh;            /* a shell command, "ssh" with its options */
    const char *remote_path;    /* where the tools are on the other machines; NULL */
    struct words via;           /* HOST=ADDRESS */
    struct words in_options;    /* for each receiver */
    struct words out_options;   /* for each sender */
    bool back;                  /* the second segment answers the first: leash_work.h */
    int sync;                   /* as bool: of the file written at the end, if it is one */
    bool waits;                 /* of several targets, for the slowest: see tee.h */
    bool own_stdin, own_stdout; /* is this process's stdin (stdout) part of the chain? */
    int way;                    /* enum leash_way: the first that is tried */
    const char *ports;          /* to listen on, "0" = any */
    int says_why; /* commands that end with 1 to this have said all there is to say */
};

struct pipe_segment {
    const char *host; /* as ssh takes it; NULL = this machine */
    const char *label;
    enum leash_middle middle;
    bool shell; /* LEASH_EXEC: the one word is for the login shell */
    struct words words;
};

/* The options that rdpipe and rdcp share (pipe_options.c). */
enum { PIPE_OPTIONS_MOST = 32, PIPE_OPTION_FIRST = 1000 };

/* Writes their rows, from `rows` on, without the row of zeros at the end. */
size_t pipe_options(struct option *rows);

/* Takes what getopt_long returned. 1: taken; 0: not one of these; -1: refused, and said
 * so. */
int pipe_option(struct pipe_settings *settings, int code, const char *value);

void pipe_settings_open(struct pipe_settings *settings, const char *program);
void pipe_settings_close(struct pipe_settings *settings);

/* Runs it to its end. Returns the exit status, as `set -o pipefail` counts: 128 and its
 * number if a signal to this process ended it, and `*caught` is then that number. */
int pipe_run(const struct pipe_settings *settings, const struct pipe_segment *segments,
             size_t count, int *caught);
