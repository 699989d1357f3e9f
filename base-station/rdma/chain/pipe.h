/* Run a chain of segments on one or more machines, with a hop between neighbours. Shared by rdpipe
 * and rdcp. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent_protocol.h"

struct pipe_settings {
    const char *program, *usage; /* for messages */
    const char *ssh;            /* a shell command, "ssh" with its options */
    const char *remote_path;    /* folder of the tools on the other machines; or NULL */
    struct words via;           /* HOST=ADDRESS */
    struct words in_options;    /* for each receiver */
    struct words out_options;   /* for each sender */
    bool back;                  /* the second segment answers the first: see agent_protocol.h */
    bool sync;                  /* sync the file written at the end, if any */
    bool verbose, help, version;
    bool own_stdin, own_stdout; /* true if this process's stdin (stdout) belongs to the chain */
    int route;                  /* enum agent_route: the first path to try */
    const char *ports;          /* to listen on; NULL = any */
    const char *timeout;        /* as given; NULL */
    int silence_ms;             /* the sessions' limit by --timeout; 0 = no limit */
    int says_why; /* a command's exit status up to this needs no further message */
    bool *begun;  /* becomes true when bytes of a segment pass through rdpipe; or NULL */
};

struct pipe_segment {
    const char *host; /* as ssh takes it; NULL = this machine */
    const char *label;
    enum agent_middle middle;
    struct words words;
};

/* --- segments as arguments: pipe_options.c --- */

/* Split an argument of rdpipe or rdcp into "[user@]host:" and the rest. `*host` gets ssh's form,
 * "user@fe80::1" of "user@[fe80::1]:", to be freed by the caller; NULL = this machine. Return the
 * rest, or NULL if the host name begins with "-": ssh would read it as an option. */
const char *segment_split(const char *text, char **host);

/* Parse one argument. Return 0, or -1 with an unquoted reason in `*why`. A half-made segment may be
 * closed. */
int segment_open(struct pipe_segment *segment, const char *text, const char **why);
void segment_close(struct pipe_segment *segment);

/* Print why an argument is refused: WHAT "TEXT": WHY. Return -1. */
int pipe_refuse(const char *what, const char *text, const char *why);

/* --- options: pipe_options.c --- */

enum to_whom { TO_SENDER = 1, TO_RECEIVER, TO_BOTH };

struct choice {
    const char *name;
    int letter; /* 0: none */
    enum {
        CHOICE_FLAG,  /* a bool becomes true */
        CHOICE_VALUE, /* an int becomes `value` */
        CHOICE_TEXT,  /* a const char * is the argument */
        CHOICE_LIST,  /* a struct words gets it */
        CHOICE_HOPS,  /* an option for the tools of `field` (enum to_whom);
                         `value` 1: it has an argument */
    } kind;
    size_t field; /* offset into the settings */
    int value;
};

/* Parse options, `own` and those shared by rdpipe and rdcp, into the struct that starts with
 * `settings`. Return -1 to continue at argv[optind], otherwise an exit status. */
int pipe_options(struct pipe_settings *settings, const char *letters,
                 const struct choice *own, size_t count, int argc, char **argv);

/* Append the flags, texts and lists of `own` in the form that pipe_options() parses. */
void pipe_options_add(struct words *into, const struct pipe_settings *settings,
                      const struct choice *own, size_t count);

void pipe_tell_hops(struct pipe_settings *settings, enum to_whom who, const char *option,
                    const char *value);
void pipe_settings_close(struct pipe_settings *settings);

/* Run the chain to its end. Return its exit status by the rule of `set -o pipefail`: 128 plus
 * the signal's number if a signal to this process ended the chain; that number is stored in
 * `*caught`. */
int pipe_run(const struct pipe_settings *settings, const struct pipe_segment *segments,
             size_t count, int *caught);
