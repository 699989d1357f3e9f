/* What is typed at a terminal, for a process group in the background, which must not read
 * it: a child of this process, the typist, does. */
#pragma once

#include <sys/types.h>

struct typist {
    int fd;       /* to be read in its place; -1 before, and once it has started */
    int typed_fd; /* the other end; -1 likewise */
    int life_fd;  /* it hears by this one's end that this process was killed */
    pid_t pid;    /* 0 before it has started */
};

void typist_init(struct typist *typist);

/* Makes the pipe; whoever is to read it is started then. 0, or -1 with errno. */
int typist_open(struct typist *typist);

/* Reads the terminal from now on, where one was opened and does not yet. Nobody else may
 * be reading it, as an ssh that asks for a password. 0; -1: try again. */
int typist_start(struct typist *typist);

/* Only now does the pipe end: none of those that read it may run any more. */
void typist_close(struct typist *typist);
