/* One argument of rdpipe: the host and the command or file. */
#pragma once

#include "pipe.h"

/*
 * Return the length of the leading "[user@]host:" of `text`, or 0 if it is local. rdcp's arguments
 * follow the same rule.
 */
int segment_host_length(const char *text);

/*
 * Parse one argument. Return 0, or -1 with an unquoted reason in `*why`. A half-made segment may be
 * closed.
 */
int segment_open(struct pipe_segment *segment, const char *text, const char **why);
void segment_close(struct pipe_segment *segment);

/* Convert "user@[fe80::1]:" of this length to ssh's form "user@fe80::1"; the caller frees it. */
char *segment_host(const char *text, int length);

/* True if `text` looks like a host name that starts with "-"; ssh would read it as an option. */
int segment_is_option(const char *text);
