/* One argument of rdpipe: where it runs and what it is. */
#pragma once

#include "pipe.h"

/* The length of the "[user@]host:" with which `text` begins, 0 if it is local.
 * rdcp's arguments follow the same rule. */
int segment_host_length(const char *text);

/* Reads one argument. Returns 0, or -1 with a reason that quotes nothing in `*why`.
 * A half-made segment may be closed. */
int segment_open(struct pipe_segment *segment, const char *text, const char **why);
void segment_close(struct pipe_segment *segment);

/* "user@[fe80::1]:" of this length as ssh takes it: "user@fe80::1"; to free. */
char *segment_host(const char *text, int length);

/* Does `text` look like a host name that begins with "-", which ssh would take for
 * an option? */
int segment_is_option(const char *text);
