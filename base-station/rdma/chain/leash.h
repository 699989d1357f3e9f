/* The remote end of an SSH session: it runs one segment of a pipe and ends all of it
 * when rdpipe falls silent. rdsend, rdrecv, rdpipe and rdcp are all leashes when their
 * first argument is --leash; their main() begins with
 *     standard_open();
 *     if (leash_asked(argc, argv)) return leash_main(argc, argv);
 */
#ifndef LEASH_H
#define LEASH_H

#include <stdbool.h>

bool leash_asked(int argc, char **argv);

/* --leash [IN OUT]: speaks leash_work.h on stdin and stdout; IN and OUT are descriptors
 * that the segment gets for its own stdin and stdout (/dev/null without).
 * --leash-run FD CMD...: runs CMD, writes its status to FD, exits with it. */
int leash_main(int argc, char **argv);

#endif
