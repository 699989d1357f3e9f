/* What went wrong, as one line for a person and an exit status. */
#ifndef TROUBLE_H
#define TROUBLE_H

#include <stdint.h>

enum { EXIT_OK = 0, EXIT_FAULT = 1, EXIT_USAGE = 2, EXIT_UNKNOWN = 3 };

struct trouble {
    int status; /* 0 = none */
    char text[320];
};

/* Notes it unless something was noted before: the first cause counts. Returns -1. */
int troubled(struct trouble *trouble, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "PROGRAM: line" on stderr, in one write. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Copies text that came from outside, with "?" for each byte that is not printable. */
void shown(char *into, uint32_t room, const void *text, uint32_t length);

int64_t now_ms(void);
int64_t now_us(void);

#endif
