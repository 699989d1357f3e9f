/* File descriptors: those that whoever starts this may have closed, and closing. */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

/* Opens what of stdin, stdout and stderr is closed, so that no socket or file takes the
 * number and gets what is said there. Reading stdin and writing stdout fail as before.
 * Every main() begins with it. */
void standard_open(void);

/* Closes it and makes it -1, which is none; errno stays. */
void shut(int *fd);

#endif
