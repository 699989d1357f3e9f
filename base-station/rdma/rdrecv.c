/* rdrecv: see stream/receive.c, and rdrecv.1. */
#include "descriptors.h"
#include "end.h"
#include "leash.h"

int main(int argc, char **argv)
{
    standard_open();
    if (leash_asked(argc, argv))
        return leash_main(argc, argv);
    return options_main(false, argc, argv, receive_stream);
}
