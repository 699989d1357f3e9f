/* stdin, stdout and stderr, which whoever starts this may have closed. */
#ifndef STANDARD_H
#define STANDARD_H

/* Opens what of them is closed, so that no socket or file takes the number and gets what
 * is said there. Reading stdin and writing stdout fail as before. Every main() begins
 * with it. */
void standard_open(void);

#endif
