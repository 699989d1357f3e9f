/* The command line that runs one segment: the tools around what the user asked for. */
#ifndef LEASH_WORK_H
#define LEASH_WORK_H

#include <limits.h>

#include "leash_line.h"

/* Descriptors that the tools inherit, by number. */
enum { LEASH_KEY_IN_FD = 10, LEASH_ANNOUNCE_FD, LEASH_KEY_OUT_FD, LEASH_STATUS_FD };

/* Builds it into `words`; `self` is the path of this binary, whose folder has the others.
 *   rdrecv ... 0 -- rdsend ... HOST PORT -- SELF --leash-run FD COMMAND...
 * Returns 0, or -1 when memory is short. */
int leash_work_open(struct words *words, const struct leash_work *work, const char *self);

/* How many tools stand around the segment: 0 to 2. */
int leash_work_tools(const struct leash_work *work);

/* A file name as a tool takes it: "~/" is the home, none begins with "-"; to free. */
char *leash_work_file(const char *name);

/* The path of this program; the others lie beside it. 0, or -1 with errno. */
int leash_work_self(char into[PATH_MAX]);

#endif
