/* Remote end of an rdpipe session; it runs one segment. The protocol is in leash_work.h. */
#pragma once

/*
 * Run `rdpipe --leash [IN OUT]`: a leash on stdin and stdout. IN and OUT are the segment's stdin
 * and stdout (default /dev/null). The function exits the process if called with these arguments,
 * and returns otherwise.
 */
void leash_main(int argc, char **argv);
