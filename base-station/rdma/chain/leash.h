/* The end of a session of rdpipe's that runs one segment: see leash_work.h for what it
 * speaks. */
#pragma once

/* `rdpipe --leash [IN OUT]`: a leash on its stdin and stdout; IN and OUT are what the
 * segment gets for its own (/dev/null without). Of such a call it does not come back. */
void leash_main(int argc, char **argv);
