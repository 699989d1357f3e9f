/* What rdpipe and a leash say to each other over an SSH session.
 *
 * The leash begins with the line LEASH_GREETING, before which there may be a login shell's
 * noise. All else is frames: a verb, a hop (i, o or b: into the segment, out of it, beside
 * the hops), the length of the body in six hex digits, the body.
 *
 *   rdpipe -> leash (stdin)
 *     R run         a struct leash_work; another one: the hop out of it, another way, or
 *                   where it goes, of a source that runs already
 *     D dial        TOKEN PORT ADDRESS,...: the hop into it, connect to there for rdrecv;
 *                   of nothing: that hop goes through the sessions
 *   leash -> rdpipe (stdout)
 *     A announce    "port=N transports=T,... addresses=A,...", where rdrecv listens
 *     W await       "port=N addresses=A,...", for the other end of the hop to dial
 *     C connected   it did
 *     U unreached   nobody answers there: `run` or `dial` as another says
 *     S status      N: the segment's command ended by itself
 *     N note        for a person
 *     X exit        N: nothing of this segment is left; 128 + a signal
 *   either
 *     B beat        once a second
 *     F flow        bytes of the hop; none: its end
 *     T took        N: so many went on, as many more may come
 *
 * A body is texts, each ended by a NUL, but that of a flow. End of file, or 10 s without
 * anything, ends everything below the leash.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"

#define LEASH_GREETING "rdpipe-leash 6"
#define LEASH_GREETING_NAME 13 /* bytes of it before its version */
#define LEASH_SILENCE_MS 10000
#define LEASH_BEAT_MS 1000
#define LEASH_KEY 64 /* digits */
#define LEASH_TOKEN 32 /* characters */
#define LEASH_BODY (8 << 20) /* most of a frame: more than a command line that rdcp had */
#define LEASH_FRAME (32 << 10) /* most bytes of one `flow` */
#define LEASH_WINDOW (2 << 20) /* that may be on their way */
#define LEASH_LET_GO 75 /* exit status: rdpipe left before the segment had ended */

/* Words to hand to execv: always ended by NULL, each owned. */
struct words {
    char **word;
    size_t count;
};

void words_add(struct words *words, const char *text);
void words_add_text(struct words *words, char *text); /* and frees it */
void words_close(struct words *words);
int words_by_text(const void *one, const void *other); /* for qsort(3), bsearch(3) */

/* --- frames --- */

enum leash_verb {
    LEASH_RUN = 'R', LEASH_DIAL = 'D', LEASH_ANNOUNCE = 'A', LEASH_AWAIT = 'W',
    LEASH_CONNECTED = 'C', LEASH_UNREACHED = 'U', LEASH_STATUS = 'S', LEASH_NOTE = 'N',
    LEASH_EXIT = 'X', LEASH_BEAT = 'B', LEASH_FLOW = 'F', LEASH_TOOK = 'T',
};

enum leash_hop { LEASH_HOP_IN, LEASH_HOP_OUT, LEASH_HOP_BACK, LEASH_HOPS };

struct leash_said {
    enum leash_verb verb;
    enum leash_hop hop;
    const char *body; /* in the input; ends with a NUL, but of a flow */
    size_t length;
};

/* What is next in `input`. 1: this; 0: it is not all there yet; -1: it is no frame. */
int leash_next(const struct bytes *input, struct leash_said *said);

/* Takes it out. */
void leash_heard(struct bytes *input, const struct leash_said *said);

void leash_frame(struct bytes *into, enum leash_verb verb, enum leash_hop hop,
                 const void *body, size_t length);

/* The texts of a frame. */
void leash_texts(struct words *into, const struct leash_said *said);

/* Writes a frame to rdpipe, which shows as an end of stdin where it has left. */
void leash_say(enum leash_verb verb, enum leash_hop hop, const void *body, size_t length);

/* A frame of one text, or of none. */
void leash_text(struct bytes *into, enum leash_verb verb, enum leash_hop hop,
                const char *text);

/* What a frame of a number says, which is from 0 to `most`; without one: `most`. */
size_t leash_number(const struct leash_said *said, size_t most);

/* The value of NAME=VALUE in an announcement; to free, NULL if absent or
 * if it holds anything but letters, digits and "._:%,-", or begins with "-". */
char *leash_field(const char *line, const char *name);

/* --- what is to be run --- */

enum leash_middle {
    LEASH_RDCP,  /* its words */
    LEASH_SHELL, /* a command for the login shell */
    LEASH_READ, LEASH_WRITE, LEASH_APPEND, /* a file */
    LEASH_PASS,  /* this end's own stdin or stdout */
};
enum leash_way {
    LEASH_SURE,     /* straight, and need not be looked for */
    LEASH_STRAIGHT,
    LEASH_BACK,
    LEASH_THROUGH_SSH,
};

struct leash_work {
    enum leash_middle middle;
    bool back; /* LEASH_BACK_FD goes to rdpipe or, of a segment without a hop into it, its
                  stdin comes from there */
    enum leash_way way; /* of the hop out of it: see way.h */
    const char *token, *ports; /* of who dials back; to listen for it on */
    const char *key_in, *key_out; /* of the hop into it and out of it; "": there is none */
    const char *port, *addresses; /* where that one goes; "": a source may begin, and
                                     another `run` tells it */
    struct words in, out; /* options for its receiver and its sender */
    struct words words;   /* what it is, one word but of rdcp */
    struct words texts;   /* of one that was taken: all of it, to which the rest points */
};

void leash_work_say(struct bytes *into, const struct leash_work *work);

/* 0; -1: that cannot be run. To close in either case. */
int leash_work_take(struct leash_work *work, const struct leash_said *said);
void leash_work_close(struct leash_work *work);

bool leash_is_command(enum leash_middle middle);
bool leash_writes(enum leash_middle middle);

/* --- the command line that runs one segment: the tools around what was asked for --- */

/* Descriptors that the tools inherit, by number. */
enum { LEASH_KEY_IN_FD = 10, LEASH_ANNOUNCE_FD, LEASH_KEY_OUT_FD, LEASH_STATUS_FD,
       LEASH_GUESTS_FD, LEASH_SOCKET_FD, LEASH_WHERE_FD, LEASH_BACK_FD };

/* Builds it into `words`:
 *   rdrecv ... 0 -- rdsend ... HOST PORT -- COMMAND */
void leash_work_open(struct words *words, const struct leash_work *work);

/* Does its sender run before it hears where to? */
bool leash_work_ahead(const struct leash_work *work);

/* How many tools stand around the segment: 0 to 2. */
int leash_work_tools(const struct leash_work *work);

/* A file name as a tool takes it: "~/" is the home, none begins with "-"; to free. */
char *leash_work_file(const char *name);

/* The path of a tool: they all lie beside this program. To free. */
char *leash_work_tool(const char *name);
