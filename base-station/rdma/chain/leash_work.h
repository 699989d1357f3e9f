/* What rdpipe and a leash say to each other over an SSH session: lines of ASCII.
 *
 *   rdpipe -> leash (stdin)
 *     leash 4 KEY_IN KEY_OUT       32 bytes in hex for the hop into this segment and
 *                                  the one out of it, "-" where there is none
 *     in OPTION | out OPTION       one option for the receiver or for the sender, hex
 *     exec WORD...                 the segment is a command: its words, hex
 *     shell TEXT                   it is a command for the login shell, hex
 *     read FILE | write FILE | append FILE        it is a file, hex
 *     pass                         it is this end's own stdin or stdout
 *     back                         descriptor 16 goes to rdpipe or, of a segment without a
 *                                  hop into it, stdin comes from there: the `back` below
 *     to PORT TRANSPORTS ADDRESS,...              where the hop out of it goes
 *     run                          that was all; to where it goes straight
 *     run back TOKEN PORTS         the hop out of it: its other end dials, see way.h
 *     run ssh                      it goes through the sessions
 *     dial TOKEN PORT ADDRESS,...  the hop into it: connect to there for rdrecv
 *     tunnel PORT                  it goes through the sessions; PORT is rdrecv's
 *     beat                         once a second
 *   leash -> rdpipe (stdout; before the first line there may be a login shell's noise)
 *     rdpipe-leash 4
 *     announce port=N transports=T,... addresses=A,...
 *     await port=N addresses=A,... for the other end to dial
 *     reached out                  it did
 *     unreached out|in             nobody answers there: `run` and `dial` as another says
 *     status N                     the segment's command ended by itself
 *     note TEXT                    for a person
 *     beat
 *     exit N                       nothing of this segment is left; 128 + a signal
 *
 *   either
 *     flow in|out|back N           followed by N bytes of the hop into the segment, of the
 *                                  one out of it, of what goes beside them; 0: its end
 *     took in|out|back N           so many went on: as many more may come
 *
 * End of file, or 10 s without a line, ends everything below the leash.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"

/* rdsend, rdrecv, rdpipe and rdcp are all leashes when their first argument is --leash,
 * and do not come back from here then; their main() begins with it. It opens what of
 * stdin, stdout and stderr is closed, too.
 * --leash [IN OUT]: speaks as above on stdin and stdout; IN and OUT are descriptors that
 * the segment gets for its own stdin and stdout (/dev/null without).
 * --leash-run FD CMD...: runs CMD, writes its status to FD, exits with it. */
void leash_main(int argc, char **argv);

#define LEASH_GREETING "rdpipe-leash 4"
#define LEASH_GREETING_NAME 13 /* bytes of it before its version */
#define LEASH_SILENCE_MS 10000
#define LEASH_BEAT_MS 1000
#define LEASH_KEY 64 /* digits */
#define LEASH_LINE_BYTES (1 << 20) /* more than execve takes in one argument, in hex */
#define LEASH_WORDS 65536
#define LEASH_TOKEN 32 /* characters */
#define LEASH_FRAME (32 << 10) /* most bytes of one `flow` */
#define LEASH_WINDOW (2 << 20) /* that may be on their way */
#define LEASH_LET_GO 75 /* exit status: rdpipe left before the segment had ended */

enum leash_middle { LEASH_NOTHING, LEASH_EXEC, LEASH_READ, LEASH_WRITE, LEASH_APPEND,
                    LEASH_PASS };

extern const char *const leash_middles[]; /* their names */

enum leash_way { LEASH_STRAIGHT, LEASH_BACK, LEASH_THROUGH_SSH };

/* Words to hand to execv: always ended by NULL, each owned. */
struct words {
    char **word;
    size_t count;
};

void words_add(struct words *words, const char *text);
void words_add_text(struct words *words, char *text); /* and frees it */
void words_close(struct words *words);
int words_by_text(const void *one, const void *other); /* for qsort(3), bsearch(3) */

struct leash_dial {
    char *token, *port, *addresses;
};

struct leash_work {
    bool greeted, has_in, has_out, back, complete;
    char key_in[LEASH_KEY + 1], key_out[LEASH_KEY + 1];
    struct words in_options, out_options;
    enum leash_middle middle;
    struct words middle_words; /* the command, or the one file name */
    char *port, *transports, *addresses;
    enum leash_way way; /* of the hop out of it */
    char *token, *ports;
    struct leash_dial dial; /* of the one into it: asked for, NULLs: not, or done */
    char *tunnel;           /* the same */
};

/* Takes one line from rdpipe (which it may cut up). Returns 0, or -1 with a reason. */
int leash_take(struct leash_work *work, char *line, const char **why);
void leash_work_close(struct leash_work *work);

void leash_dial_close(struct leash_dial *dial);

enum leash_hop { LEASH_HOP_IN, LEASH_HOP_OUT, LEASH_HOP_BACK, LEASH_HOPS };
extern const char *const leash_hops[]; /* their names */

struct leash_said {
    char *line; /* NULL: it is a frame */
    enum leash_hop hop;
    bool took; /* it is a `took`, without bytes */
    const char *bytes;
    size_t length, whole; /* of the bytes; with the line before them */
};

/* What one end says next, in `input`; false: it is not all there yet. */
bool leash_next(struct bytes *input, struct leash_said *said);

/* Takes it out. */
void leash_heard(struct bytes *input, struct leash_said *said);

/* Writes it to rdpipe, which shows as an end of stdin where it has left. */
void leash_say(const struct bytes *text);

/* The value of NAME=VALUE in an announcement; to free, NULL if absent or
 * if it holds anything but letters, digits and "._:%,-". */
char *leash_field(const char *line, const char *name);

/* --- the command line that runs one segment: the tools around what was asked for --- */

/* Descriptors that the tools inherit, by number. */
enum { LEASH_KEY_IN_FD = 10, LEASH_ANNOUNCE_FD, LEASH_KEY_OUT_FD, LEASH_STATUS_FD,
       LEASH_GUESTS_FD, LEASH_SOCKET_FD, LEASH_BACK_FD };

/* Builds it into `words`; `self` is the path of this binary, whose folder has the others.
 *   rdrecv ... 0 -- rdsend ... HOST PORT -- SELF --leash-run FD COMMAND... */
void leash_work_open(struct words *words, const struct leash_work *work, const char *self);

/* How many tools stand around the segment: 0 to 2. */
int leash_work_tools(const struct leash_work *work);

/* A file name as a tool takes it: "~/" is the home, none begins with "-"; to free. */
char *leash_work_file(const char *name);

/* The path of this program; the others lie beside it. 0, or -1 with errno. */
int leash_work_self(char into[PATH_MAX]);
