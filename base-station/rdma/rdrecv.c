/* rdrecv: see receive.h, and rdrecv.1. */
#include "receive.h"

#include <stdio.h>

#include "key.h"
#include "leash.h"
#include "standard.h"

int main(int argc, char **argv)
{
    standard_open();
    if (leash_asked(argc, argv))
        return leash_main(argc, argv);
    struct options options;
    struct trouble trouble = {0};
    if (options_read(&options, false, argc, argv, &trouble) < 0) {
        say("%s", trouble.text);
        return trouble.status;
    }
    if (options.help) {
        fputs(options_usage_receive, stdout);
        return EXIT_OK;
    }
    if (options.version) {
        puts("rdrecv " RDPIPE_VERSION);
        return EXIT_OK;
    }
    if (options.new_key) {
        if (key_make(options.new_key, &trouble) == 0)
            return EXIT_OK;
        say("%s", trouble.text);
        return trouble.status;
    }
    return receive_stream(&options);
}
