/* rdrecv: see stream/receive.c, and rdrecv.1. */
#include <stdio.h>
#include <string.h>

#include "descriptors.h"
#include "end.h"
#include "agent_protocol.h"

int main(int argc, char **argv)
{
    standard_open();
    /* An rdpipe older than version 5 starts its agent by this name. */
    if (argc == 2 && strcmp(argv[1], "--agent") == 0)
        return puts(AGENT_GREETING) < 0 ? EXIT_FAULT : EXIT_USAGE;
    return options_main(false, argc, argv, receive_stream);
}
