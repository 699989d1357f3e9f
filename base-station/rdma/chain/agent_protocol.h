/* Protocol between rdpipe and an agent over an SSH session.
 *
 * The agent starts with the line AGENT_GREETING AGENT_VERSION; output of a login shell may precede
 * it. All other messages are frames: a verb, a hop (i, o or b: into the segment, out of it, or the
 * back channel beside the hops), the length of the body in six hex digits, the body.
 *
 *   rdpipe -> agent (stdin)
 *     R run         a struct agent_work. A second one changes the path of the hop out of the
 *                   segment, or gives the address to a source that is already running
 *     V via SSH     the hop into the segment uses the sessions
 *   agent -> rdpipe (stdout)
 *     A announce    "port=N transports=T,... addresses=A,...", the listening address of rdrecv
 *     U unreached   no address of the next end is reachable: `run` follows with another path
 *     S status      N: the segment's command exited by itself
 *     N note        text for the user
 *     X exit        N: all processes of this segment have ended; 128 + a signal
 *   either
 *     B beat        once a second
 *     F flow        bytes of the hop; empty: end of the data
 *     K ack         N: acknowledges N bytes and allows as many more
 *
 * A body is a list of texts, each ended by a NUL, except for flow frames. End of file, or silence
 * for as long as the agent's command line says, ends all processes below the agent. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"

#define AGENT_GREETING "rdpipe-agent " /* and the version */
#define AGENT_VERSION 7
#define AGENT_SILENCE_MS 10000 /* without --timeout */
#define AGENT_SILENCE_LEAST_MS 5000 /* an agent that probes an address is silent for 3.5 s */
#define AGENT_BEAT_MS 1000
#define AGENT_KEY 64 /* digits */
#define AGENT_BODY (8 << 20) /* longest body: above the command line limit of rdcp */
#define AGENT_FLOW_BYTES (32 << 10) /* most bytes of one `flow` */
#define AGENT_WINDOW (2 << 20) /* bytes in flight */
#define AGENT_RELEASED 75 /* exit status: rdpipe left before the segment ended */

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

enum agent_verb {
    AGENT_RUN = 'R', AGENT_VIA_SSH = 'V', AGENT_ANNOUNCE = 'A', AGENT_UNREACHED = 'U',
    AGENT_STATUS = 'S', AGENT_NOTE = 'N', AGENT_EXIT = 'X', AGENT_BEAT = 'B',
    AGENT_FLOW = 'F', AGENT_ACK = 'K',
};

enum agent_hop { AGENT_HOP_IN, AGENT_HOP_OUT, AGENT_HOP_BACK, AGENT_HOPS };

struct agent_frame {
    enum agent_verb verb;
    enum agent_hop hop;
    const char *body; /* points into the input; ends with a NUL except in flow frames */
    size_t length;
};

/* Parse the next frame in `input`. Return 1 if it is complete, 0 if bytes are missing, and -1 if it
 * is invalid. */
int agent_frame_next(const struct bytes *input, struct agent_frame *frame);

/* Remove the frame from the input. */
void agent_frame_drop(struct bytes *input, const struct agent_frame *frame);

/* Append a frame. */
void agent_frame_add(struct bytes *into, enum agent_verb verb, enum agent_hop hop,
                     const void *body, size_t length);

/* Append a frame with one text, or with an empty body. */
void agent_frame_add_text(struct bytes *into, enum agent_verb verb, enum agent_hop hop,
                          const char *text);

/* Write a frame to rdpipe. If rdpipe has left, the caller notices it as the end of stdin. */
void agent_send(enum agent_verb verb, enum agent_hop hop, const void *body, size_t length);

/* Return the number in a frame, clamped to `most`; `most` if the frame holds no number. */
size_t agent_frame_number(const struct agent_frame *frame, size_t most);

/* Return how many leading characters are letters, digits or one of "._:%,-", as in addresses. */
size_t agent_plain(const char *text);

/* Return the value of NAME=VALUE in an announcement, to be freed by the caller. Return NULL if it
 * is absent, begins with "-", or holds other characters than those. */
char *agent_field(const char *line, const char *name);

/* --- description of the segment to run --- */

enum agent_middle {
    AGENT_RDCP,  /* with its arguments */
    AGENT_SHELL, /* a command for the login shell */
    AGENT_READ, AGENT_WRITE, /* a file */
    AGENT_PASS,  /* this end's own stdin or stdout */
};
enum agent_route {
    AGENT_SURE,     /* direct, and known to be reachable */
    AGENT_STRAIGHT,
    AGENT_THROUGH_SSH,
};

struct agent_work {
    enum agent_middle middle;
    bool back; /* AGENT_BACK_FD is open, as output or (without a hop in) as stdin */
    enum agent_route route; /* of the hop out of the segment: see route.h */
    const char *key_in, *key_out; /* of the hop in and the hop out; "": no hop */
    const char *port, *addresses; /* target of the hop out; "": sent in a later `run` */
    struct words in, out; /* options for its receiver and its sender */
    struct words words;   /* arguments; one word except for rdcp */
    struct words texts;   /* of a parsed message: storage for all other fields */
};

void agent_work_add(struct bytes *into, const struct agent_work *work);

/* Parse a `run` frame. Return 0, or -1 if the segment cannot be run. The caller closes `work` in
 * either case. */
int agent_work_take(struct agent_work *work, const struct agent_frame *frame);
void agent_work_close(struct agent_work *work);

bool agent_is_command(enum agent_middle middle);

/* Run `rdpipe --agent SILENCE_MS [IN OUT]`: an agent on stdin and stdout, see agent.c. It ends if
 * rdpipe is silent for so long (0: no limit). IN and OUT are the segment's stdin and stdout
 * (default /dev/null). The function exits the process if called with these arguments, and returns
 * otherwise. */
void agent_main(int argc, char **argv);

/* --- command line of a segment: the tools around the user's command --- */

/* Descriptor numbers that the tools inherit. */
enum { AGENT_KEY_IN_FD = 10, AGENT_ANNOUNCE_FD, AGENT_KEY_OUT_FD, AGENT_STATUS_FD,
       AGENT_PEERS_FD, AGENT_WHERE_FD, AGENT_BACK_FD };

/* Build the command line in `words`:
 *   rdrecv ... 0 -- rdsend ... - 1 -- COMMAND */
void agent_work_open(struct words *words, const struct agent_work *work);

/* True if the sender starts before it has an address. */
bool agent_work_ahead(const struct agent_work *work);

/* Number of tools around the segment: 0 to 2. */
int agent_work_tools(const struct agent_work *work);

/* Return a file name for a tool: "~/" is expanded to the home, and the name never starts with "-".
 * The caller frees it. */
char *agent_work_file(const char *name);

/* Return the path of a tool in this program's folder; the caller frees it. */
char *agent_work_tool(const char *name);
