/* rdsend: reads a stream and sends it to one receiver. */
#ifndef SEND_H
#define SEND_H

#include "options.h"

/* Returns the exit status; what went wrong was said. */
int send_stream(const struct options *options);

#endif
