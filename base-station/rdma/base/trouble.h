/* What went wrong, as one line for a person and an exit status. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_OK = 0, EXIT_FAULT = 1, EXIT_USAGE = 2, EXIT_UNKNOWN = 3 };

struct trouble {
    int status; /* 0 = none */
    char text[320];
    bool heard; /* of a command that failed, the peer, a signal: not this end's own */
};

/* Notes it unless something was noted before: the first cause counts. Returns -1. */
int troubled(struct trouble *trouble, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define fault(trouble, ...) troubled(trouble, EXIT_FAULT, __VA_ARGS__)

/* Does stderr take a line, within so many ms? Ctrl-S at a terminal stops it, and who
 * speaks to the peer must not wait for Ctrl-Q. */
bool say_ready(int wait_ms);

/* What stands before each line from now on; not copied. */
void say_where(const char *where);

/* "PROGRAM: line" on stderr, in one write; nothing where it takes no line. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Copies a name, with "?" for each control character, so that it stays in its line. */
void visible(char *into, size_t room, const char *name);

/* Copies text that came from outside, with "?" for each byte that is not printable. */
void shown(char *into, uint32_t room, const void *text, uint32_t length);

int64_t now_ms(void); /* some ms behind, and cheap on every machine: for time-outs */
int64_t now_us(void);
