/* rdrecv: see stream/receive.c, and rdrecv.1. */
#include <stdio.h>
#include <string.h>

#include "descriptors.h"
#include "end.h"
#include "leash_work.h"

int main(int argc, char **argv)
{
    standard_open();
    /* An rdpipe older than version 5 starts its leash by this name. */
    if (argc == 2 && strcmp(argv[1], "--leash") == 0)
        return puts(LEASH_GREETING) < 0 ? EXIT_FAULT : EXIT_USAGE;
    return options_main(false, argc, argv, receive_stream);
}
