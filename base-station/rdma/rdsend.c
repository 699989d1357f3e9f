/* rdsend: see send.h, and rdsend.1. */
#include "send.h"

#include <stdio.h>

#include "leash.h"
#include "standard.h"

int main(int argc, char **argv)
{
    standard_open();
    if (leash_asked(argc, argv))
        return leash_main(argc, argv);
    struct options options;
    struct trouble trouble = {0};
    if (options_read(&options, true, argc, argv, &trouble) < 0) {
        say("%s", trouble.text);
        return trouble.status;
    }
    if (options.help) {
        fputs(options_usage_send, stdout);
        return EXIT_OK;
    }
    if (options.version) {
        puts("rdsend " RDPIPE_VERSION);
        return EXIT_OK;
    }
    return send_stream(&options);
}
