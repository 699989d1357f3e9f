/* Text for the user on stderr: errors, which have an exit status too, and progress. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_OK = 0, EXIT_FAULT = 1, EXIT_USAGE = 2, EXIT_UNKNOWN = 3 };

struct error {
    int status; /* 0 = no error */
    char text[320];
    /* reported by a failed command, the peer or a signal: not caused by this end */
    bool heard;
};

/* Record an error unless one is already recorded: the first cause counts. Return -1. */
int fault_status(struct error *error, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define fault(error, ...) fault_status(error, EXIT_FAULT, __VA_ARGS__)

/* Return true if stderr accepts a line within `wait_ms`. Ctrl-S at a terminal stops it, and a
 * thread that serves the peer must not wait for Ctrl-Q. */
bool say_ready(int wait_ms);

/* Set the prefix of all further lines; not copied. */
void say_where(const char *where);

/* Print "PROGRAM: line" on stderr in one write; drop it if stderr accepts no output. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Copy a name, with "?" for each control character, so that it stays on one line. */
void visible(char *into, size_t room, const char *name);

/* Copy text from outside, with "?" for each byte that is not printable. */
void shown(char *into, uint32_t room, const void *text, uint32_t length);

/* coarse clock: some ms behind, but cheap on every machine; for time-outs */
int64_t now_ms(void);
int64_t now_us(void);

#define STATS_CLEAR "\r\033[K" /* erases the line */
enum { STATS_EACH_MS = 500 };

/* Format as "1.500 MB". Return `into`. */
const char *stats_amount(double bytes, char *into, size_t room);

/* Show a progress line: `done` of `size` bytes (-1 = unknown), of which `moved` bytes were moved in
 * `us`. The next line replaces it. */
void stats_show(uint64_t moved, uint64_t done, int64_t size, int64_t us);
