/* File descriptors: those that whoever starts this may have closed, closing, and handing
 * over to another process. */
#pragma once

#include <stddef.h>

/* Opens what of stdin, stdout and stderr is closed, so that no socket or file takes the
 * number and gets what is said there. Reading stdin and writing stdout fail as before.
 * Every main() begins with it. */
void standard_open(void);

/* Closes it and makes it -1, which is none; errno stays. */
void shut(int *fd);

/* A connection (-1: none) goes to another process over a Unix socket, in one message with
 * a text, which is not empty. 0, or -1. */
int fd_send(int over, int fd, const char *text);

/* Takes what is there, and does not wait. The connection, -1: there is none. */
int fd_take(int over, char *text, size_t room);

struct handed {
    int from, to; /* from -1: /dev/null as one of the first ten, nothing as another */
};

/* What a forked child does to be the command `words`, which has no signal blocked and
 * these descriptors; `to` is below 20. */
_Noreturn void become(char **words, struct handed *handed, size_t count);
