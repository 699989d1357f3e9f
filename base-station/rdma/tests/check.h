/* Check macro and counters of the C unit tests. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

static int failures, checks;

#define CHECK(condition, ...)                                                          \
    do {                                                                               \
        checks++;                                                                      \
        if (!(condition)) {                                                            \
            failures++;                                                                \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                            \
            fprintf(stderr, __VA_ARGS__);                                              \
            fputc('\n', stderr);                                                       \
        }                                                                              \
    } while (0)

#endif
