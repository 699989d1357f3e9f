/* File descriptors: replacing closed standard streams, closing, and passing to another process. */
#pragma once

#include <stddef.h>

/* Open those of stdin, stdout and stderr that the parent closed, so that no socket or file gets
 * their number and their output. Reading stdin and writing stdout fail as before. Every main()
 * calls this first. */
void standard_open(void);

/* Close `*fd` and set it to -1, the value for no descriptor; errno is kept. */
void shut(int *fd);

/* Send a connection (-1: no connection) to another process over a Unix socket, in one message with
 * a non-empty text. Return 0, or -1. */
int fd_send(int over, int fd, const char *text);

/* Receive an available message without waiting. Return the connection; -1: no connection. */
int fd_take(int over, char *text, size_t room);

struct handed {
    /* from -1: /dev/null if `to` is one of the first ten, otherwise no descriptor */
    int from, to;
};

/* Turn a forked child into the command `words`, with all signals unblocked and these descriptors;
 * `to` is below 20. */
_Noreturn void become(char **words, struct handed *handed, size_t count);
