/* Remote end of an rdpipe session; it runs one segment. The protocol is in agent_protocol.h. */
#pragma once

/*
 * Run `rdpipe --agent [IN OUT]`: an agent on stdin and stdout. IN and OUT are the segment's stdin
 * and stdout (default /dev/null). The function exits the process if called with these arguments,
 * and returns otherwise.
 */
void agent_main(int argc, char **argv);
