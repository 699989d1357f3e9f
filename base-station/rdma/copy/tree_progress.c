/* Progress of a copy: see tree_progress.h. */
#include "tree_progress.h"

#include <stdio.h>

#include "stats.h"

bool tree_progress_wanted(const struct rdcp_options *options)
{
    return options->progress || options->json;
}

void tree_progress_open(struct tree_progress *progress, const struct rdcp_options *options)
{
    int64_t now = now_us();
    *progress = (struct tree_progress){options, now, now};
}

void tree_progress_show(struct tree_progress *progress, uint64_t done, uint64_t moved,
                        int64_t total, bool last)
{
    if (!progress->options || !tree_progress_wanted(progress->options))
        return;
    int64_t now = now_us();
    if (!last && now - progress->shown_us < STATS_EACH_MS * INT64_C(1000))
        return;
    progress->shown_us = now;
    if (!progress->options->json) {
        stats_show(moved, done, total, now - progress->start_us);
        return;
    }
    fprintf(stderr, "{\"moved\": %llu, \"done\": %llu", (unsigned long long)moved,
            (unsigned long long)done);
    if (total >= 0)
        fprintf(stderr, ", \"total\": %lld", (long long)total);
    fputs("}\n", stderr);
}

void tree_progress_clear(const struct tree_progress *progress)
{
    if (progress->options && progress->options->progress && say_ready(0))
        fputs(STATS_CLEAR, stderr);
}
