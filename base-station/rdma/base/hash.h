/* xxHash library, with detection of the processor's features at run time. On x86-64 it
 * has separate function names; the second header maps the usual names to them. */
#pragma once

#include <xxhash.h>
#ifdef __x86_64__
#include <xxh_x86dispatch.h>
#endif
