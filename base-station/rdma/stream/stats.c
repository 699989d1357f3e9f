/* Progress and throughput, on a terminal: see stats.h. */
#include "stats.h"

#include <stdio.h>

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
        snprintf(left, sizeof left, ", %.0f %%, %.0f s left",
                 100.0 * (double)done / (double)size,
                 ((double)size - (double)done) / rate);
    if (say_ready(0))
        fprintf(stderr, STATS_CLEAR "%s, %s/s%s",
                stats_amount((double)done, so_far, sizeof so_far),
                stats_amount(rate, speed, sizeof speed), left);
}
