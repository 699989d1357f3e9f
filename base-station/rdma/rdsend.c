/* rdsend: see stream/send.c, and rdsend.1. */
#include "descriptors.h"
#include "end.h"

int main(int argc, char **argv)
{
    standard_open();
    return options_main(true, argc, argv, send_stream);
}
