/* The options that rdpipe and rdcp share. */
#ifndef PIPE_OPTIONS_H
#define PIPE_OPTIONS_H

#include <getopt.h>

#include "pipe.h"

enum { PIPE_OPTIONS_MOST = 32, PIPE_OPTION_FIRST = 1000 };

/* Writes their rows, from `rows` on, without the row of zeros at the end. */
size_t pipe_options(struct option *rows);

/* Takes what getopt_long returned. 1: taken; 0: not one of these; -1: refused, and said
 * so. */
int pipe_option(struct pipe_settings *settings, int code, const char *value);

void pipe_settings_open(struct pipe_settings *settings, const char *program);
void pipe_settings_close(struct pipe_settings *settings);

#endif
