/* Text for the user on stderr: see error.h. */
#include "error.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { SAY_MS = 500 };

int fault_status(struct error *error, int status, const char *format, ...)
{
    if (error->status)
        return -1;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    error->status = status;
    return -1;
}

bool say_ready(int wait_ms)
{
    struct pollfd polled = {STDERR_FILENO, POLLOUT, 0};
    return poll(&polled, 1, wait_ms) != 0; /* an error is left to write(2) */
}

static const char *where_said;

void say_where(const char *where)
{
    where_said = where;
}

void say(const char *format, ...)
{
    char line[640];
    int head = snprintf(line, sizeof line, "%.64s: %.80s%s", program_invocation_short_name,
                        where_said ? where_said : "", where_said ? ": " : "");
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + head, sizeof line - (size_t)head - 1, format, arguments);
    va_end(arguments);
    length = head + length < (int)sizeof line - 2 ? head + length : (int)sizeof line - 2;
    line[length] = '\n';
    if (!say_ready(SAY_MS))
        return;
    if (write(STDERR_FILENO, line, (size_t)length + 1) < 0)
        errno = 0; /* stderr is gone: ignore the error */
}

void shown(char *into, uint32_t room, const void *text, uint32_t length)
{
    const unsigned char *from = text;
    uint32_t i = 0;
    for (; i < length && i + 1 < room; i++)
        into[i] = from[i] >= ' ' && from[i] < 127 ? (char)from[i] : '?';
    into[i] = '\0';
}

void visible(char *into, size_t room, const char *name)
{
    size_t i = 0;
    for (; name[i] && i + 1 < room; i++)
        into[i] = (unsigned char)name[i] >= ' ' && name[i] != 127 ? name[i] : '?';
    into[i] = '\0';
}

int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

const char *stats_amount(double bytes, char *into, size_t room)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    int unit = 0;
    for (; bytes >= 1000 && unit < 4; unit++)
        bytes /= 1000;
    snprintf(into, room, unit ? "%.3f %s" : "%.0f %s", bytes, units[unit]);
    return into;
}

void stats_show(uint64_t moved, uint64_t done, int64_t size, int64_t us)
{
    double rate = us > 0 ? (double)moved * 1e6 / (double)us : 0;
    char so_far[32], speed[32], left[48] = "";
    if (size > 0 && rate > 0 && (uint64_t)size >= done)
        snprintf(left, sizeof left, ", %.0f %%, %.0f s left", 100.0 * (double)done / (double)size,
                 ((double)size - (double)done) / rate);
    if (say_ready(0))
        fprintf(stderr, STATS_CLEAR "%s, %s/s%s", stats_amount((double)done, so_far, sizeof so_far),
                stats_amount(rate, speed, sizeof speed), left);
}
