/* rdrecv: see stream/receive.c, and rdrecv.1. */
#include "descriptors.h"
#include "end.h"

int main(int argc, char **argv)
{
    standard_open();
    return options_main(false, argc, argv, receive_stream);
}
