/* rdrecv: see stream/receive.c, and rdrecv.1. */
#include "end.h"
#include "leash_work.h"

int main(int argc, char **argv)
{
    leash_main(argc, argv);
    return options_main(false, argc, argv, receive_stream);
}
