/* What was moved and how fast: see stats.h. */
#include "stats.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "seal.h"

void stats_init(struct stats *stats, const struct options *options)
{
    *stats = (struct stats){.options = options, .start_us = now_us(), .size = -1};
}

void stats_open(struct stats *stats, int64_t size, const struct transport *transport,
                const struct meeting *meeting)
{
    const struct options *options = stats->options;
    const char *seal = seal_name(meeting);
    stats->verbose = options->verbose;
    stats->terminal = options->progress && isatty(STDERR_FILENO);
    stats->start_us = stats->shown_us = now_us();
    stats->size = size;
    if (stats->verbose)
        say("%s %s over %s%s%s, chunks of %u bytes%s%s%s",
            options->sends ? "sending to" : "receiving from", transport->peer,
            transport->kind->name, transport->device[0] ? " on " : "", transport->device,
            (unsigned)meeting_chunk(meeting), *seal ? ", " : "", seal,
            meeting_checksum(meeting) ? ", XXH3" : "");
}

static const char *amount(double bytes, char *into, size_t room)
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
                amount((double)done, so_far, sizeof so_far),
                amount(rate, speed, sizeof speed), left);
}

void stats_progress(struct stats *stats, uint64_t bytes)
{
    int64_t now = now_us();
    if (!stats->terminal || !stats->verbose ||
        now - stats->shown_us < STATS_EACH_MS * INT64_C(1000))
        return;
    stats->shown_us = now;
    stats_show(bytes, bytes, stats->size, now - stats->start_us);
}

void stats_close(struct stats *stats, const struct transport *transport,
                 const struct worker *worker, const struct trouble *trouble)
{
    bool over = atomic_load(&worker->over), sends = stats->options->sends;
    uint64_t bytes = atomic_load(&worker->total);
    double seconds = (double)(now_us() - stats->start_us) / 1e6;
    double rate = seconds > 0 ? (double)bytes / seconds : 0;
    double stream_s = over ? (double)worker->stream_us / 1e6 : 0;
    double network_s = over ? (double)worker->network_us / 1e6 : 0;
    double read_s = sends ? stream_s : 0, write_s = sends ? 0 : stream_s;
    const char *name = transport ? transport->kind->name : "none";
    if (stats->terminal && stats->verbose)
        fputs(STATS_CLEAR, stderr);
    if (stats->verbose) {
        char speed[32], done[32];
        say("Bandwidth %s/s: %s in %.3f s over %s%s%s; waited %.3f s to read, %.3f s "
            "for the network, %.3f s to write",
            amount(rate, speed, sizeof speed), amount((double)bytes, done, sizeof done),
            seconds, name, transport && transport->device[0] ? " on " : "",
            transport ? transport->device : "", read_s, network_s, write_s);
    }
    if (!stats->options->json)
        return;
    char error[sizeof trouble->text];
    shown(error, sizeof error, trouble->text, (uint32_t)strlen(trouble->text));
    for (char *at = error; *at; at++)
        if (*at == '"' || *at == '\\')
            *at = '\'';
    fprintf(stderr,
            "{\"bytes\": %llu, \"seconds\": %.6f, \"bytes_per_s\": %.0f, "
            "\"transport\": \"%s\", \"device\": \"%s\", \"peer\": \"%s\", "
            "\"read_wait_s\": %.6f, \"network_wait_s\": %.6f, \"write_wait_s\": %.6f, "
            "\"status\": %d, \"error\": \"%s\"}\n",
            (unsigned long long)bytes, seconds, rate, name,
            transport ? transport->device : "", transport ? transport->peer : "",
            read_s, network_s, write_s, trouble->status, error);
}
