/*
 * Protocol between rdpipe and a leash over an SSH session.
 *
 * The leash starts with the line LEASH_GREETING; output of a login shell may precede it. All other
 * messages are frames: a verb, a hop (i, o or b: into the segment, out of it, or the back channel
 * beside the hops), the length of the body in six hex digits, the body.
 *
 *   rdpipe -> leash (stdin)
 *     R run         a struct leash_work. A second one changes the path of the hop out of the
 *                   segment, or gives the address to a source that is already running
 *     D dial        TOKEN PORT ADDRESS,...: for the hop into the segment, connect to that
 *                   address for rdrecv; empty: that hop uses the sessions
 *   leash -> rdpipe (stdout)
 *     A announce    "port=N transports=T,... addresses=A,...", the listening address of rdrecv
 *     W await       "port=N addresses=A,...", for the other end of the hop to dial
 *     C connected   the other end has dialed
 *     U unreached   connecting failed: `run` or `dial` follows with another path
 *     S status      N: the segment's command exited by itself
 *     N note        text for the user
 *     X exit        N: all processes of this segment have ended; 128 + a signal
 *   either
 *     B beat        once a second
 *     F flow        bytes of the hop; empty: end of the data
 *     T took        N: acknowledges N bytes and allows as many more
 *
 * A body is a list of texts, each ended by a NUL, except for flow frames. End of file, or 10 s of
 * silence, ends all processes below the leash.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"

#define LEASH_GREETING "rdpipe-leash 6"
#define LEASH_GREETING_NAME 13 /* bytes before its version */
#define LEASH_SILENCE_MS 10000
#define LEASH_BEAT_MS 1000
#define LEASH_KEY 64 /* digits */
#define LEASH_TOKEN 32 /* characters */
#define LEASH_BODY (8 << 20) /* longest body: above the command line limit of rdcp */
#define LEASH_FRAME (32 << 10) /* most bytes of one `flow` */
#define LEASH_WINDOW (2 << 20) /* bytes in flight */
#define LEASH_LET_GO 75 /* exit status: rdpipe left before the segment ended */

/* Argument list for execv: always ended by NULL, each word owned. */
struct words {
    char **word;
    size_t count;
};

void words_add(struct words *words, const char *text);
void words_add_text(struct words *words, char *text); /* takes ownership */
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
    const char *body; /* points into the input; ends with a NUL except in flow frames */
    size_t length;
};

/*
 * Parse the next frame in `input`. Return 1 if it is complete, 0 if bytes are missing, and -1 if it
 * is invalid.
 */
int leash_next(const struct bytes *input, struct leash_said *said);

/* Remove the frame from the input. */
void leash_heard(struct bytes *input, const struct leash_said *said);

void leash_frame(struct bytes *into, enum leash_verb verb, enum leash_hop hop,
                 const void *body, size_t length);

/* Split a frame into its texts. */
void leash_texts(struct words *into, const struct leash_said *said);

/* Write a frame to rdpipe. If rdpipe has left, the caller notices it as the end of stdin. */
void leash_say(enum leash_verb verb, enum leash_hop hop, const void *body, size_t length);

/* Append a frame with one text, or with an empty body. */
void leash_text(struct bytes *into, enum leash_verb verb, enum leash_hop hop,
                const char *text);

/* Return the number in a frame, clamped to `most`; `most` if the frame holds no number. */
size_t leash_number(const struct leash_said *said, size_t most);

/*
 * Return the value of NAME=VALUE in an announcement, to be freed by the caller. Return NULL if it
 * is absent, begins with "-", or holds characters other than letters, digits and "._:%,-".
 */
char *leash_field(const char *line, const char *name);

/* --- description of the segment to run --- */

enum leash_middle {
    LEASH_RDCP,  /* with its arguments */
    LEASH_SHELL, /* a command for the login shell */
    LEASH_READ, LEASH_WRITE, LEASH_APPEND, /* a file */
    LEASH_PASS,  /* this end's own stdin or stdout */
};
enum leash_way {
    LEASH_SURE,     /* direct, and known to be reachable */
    LEASH_STRAIGHT,
    LEASH_BACK,
    LEASH_THROUGH_SSH,
};

struct leash_work {
    enum leash_middle middle;
    bool back; /* LEASH_BACK_FD is open, as output or (without a hop in) as stdin */
    enum leash_way way; /* of the hop out of the segment: see way.h */
    const char *token, *ports; /* expected from the peer that dials back; to listen on */
    const char *key_in, *key_out; /* of the hop in and the hop out; "": no hop */
    const char *port, *addresses; /* target of the hop out; "": sent in a later `run` */
    struct words in, out; /* options for its receiver and its sender */
    struct words words;   /* arguments; one word except for rdcp */
    struct words texts;   /* of a parsed message: storage for all other fields */
};

void leash_work_say(struct bytes *into, const struct leash_work *work);

/*
 * Parse a `run` frame. Return 0, or -1 if the segment cannot be run. The caller closes `work` in
 * either case.
 */
int leash_work_take(struct leash_work *work, const struct leash_said *said);
void leash_work_close(struct leash_work *work);

bool leash_is_command(enum leash_middle middle);
bool leash_writes(enum leash_middle middle);

/* --- command line of a segment: the tools around the user's command --- */

/* Descriptor numbers that the tools inherit. */
enum { LEASH_KEY_IN_FD = 10, LEASH_ANNOUNCE_FD, LEASH_KEY_OUT_FD, LEASH_STATUS_FD,
       LEASH_GUESTS_FD, LEASH_SOCKET_FD, LEASH_WHERE_FD, LEASH_BACK_FD };

/*
 * Build the command line in `words`:
 *   rdrecv ... 0 -- rdsend ... HOST PORT -- COMMAND
 */
void leash_work_open(struct words *words, const struct leash_work *work);

/* True if the sender starts before it has an address. */
bool leash_work_ahead(const struct leash_work *work);

/* Number of tools around the segment: 0 to 2. */
int leash_work_tools(const struct leash_work *work);

/*
 * Return a file name for a tool: "~/" is expanded to the home, and the name never starts with "-".
 * The caller frees it.
 */
char *leash_work_file(const char *name);

/* Return the path of a tool in this program's folder; the caller frees it. */
char *leash_work_tool(const char *name);
