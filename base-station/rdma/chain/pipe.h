/* Runs a chain of segments on one or more machines, a hop between each two. rdpipe and
 * rdcp are both this. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "leash_work.h"

struct pipe_settings {
    const char *program, *usage; /* for messages */
    const char *ssh;            /* a shell command, "ssh" with its options */
    const char *remote_path;    /* where the tools are on the other machines; NULL */
    struct words via;           /* HOST=ADDRESS */
    struct words in_options;    /* for each receiver */
    struct words out_options;   /* for each sender */
    bool back;                  /* the second segment answers the first: leash_work.h */
    bool sync;                  /* the file written at the end, if it is one */
    bool verbose, help, version;
    bool own_stdin, own_stdout; /* is this process's stdin (stdout) part of the chain? */
    int way;                    /* enum leash_way: the first that is tried */
    const char *ports;          /* to listen on; NULL = any */
    int says_why; /* commands that end with 1 to this have said all there is to say */
};

struct pipe_segment {
    const char *host; /* as ssh takes it; NULL = this machine */
    const char *label;
    enum leash_middle middle;
    struct words words;
};

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
        CHOICE_HOPS,  /* `field` is enum to_whom, who gets it; with an argument if
                         `value` is 1 */
    } kind;
    size_t field; /* from the beginning of the settings on */
    int value;
};

/* Reads options, `own` and those that rdpipe and rdcp share, into the struct that begins
 * with `settings`. -1: go on with argv[optind]; otherwise an exit status. */
int pipe_options(struct pipe_settings *settings, const char *letters,
                 const struct choice *own, size_t count, int argc, char **argv);

/* Adds the flags, texts and lists of `own` as pipe_options() reads them. */
void pipe_options_add(struct words *into, const struct pipe_settings *settings,
                      const struct choice *own, size_t count);

void pipe_tell_hops(struct pipe_settings *settings, enum to_whom who, const char *option,
                    const char *value);
void pipe_settings_close(struct pipe_settings *settings);

/* Runs it to its end. Returns the exit status, as `set -o pipefail` counts: 128 and its
 * number if a signal to this process ended it, and `*caught` is then that number. */
int pipe_run(const struct pipe_settings *settings, const struct pipe_segment *segments,
             size_t count, int *caught);
