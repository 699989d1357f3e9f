/* xxHash of the library, which knows at run time what the processor has: on x86-64 by
 * names of its own, which the second header puts in place of the others. */
#pragma once

#include <xxhash.h>
#ifdef __x86_64__
#include <xxh_x86dispatch.h>
#endif
