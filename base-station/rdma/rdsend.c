/* rdsend: see stream/send.c, and rdsend.1. */
#include "end.h"
#include "leash_work.h"

int main(int argc, char **argv)
{
    leash_main(argc, argv);
    return options_main(true, argc, argv, send_stream);
}
