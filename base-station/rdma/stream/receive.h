/* rdrecv: takes a stream from one sender and writes it. */
#ifndef RECEIVE_H
#define RECEIVE_H

#include "options.h"

/* Returns the exit status; what went wrong was said. */
int receive_stream(const struct options *options);

#endif
