/* Progress of a copy: see tree_progress.h. */
#include "tree_progress.h"

#include <errno.h>
#include <fts.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "stats.h"
#include "tree_io.h"
#include "tree_part.h"

bool tree_target_is(const struct tree_target *target, const struct stat *state)
{
    return target->inode && state->st_dev == target->device &&
           state->st_ino == target->inode;
}

static void show(struct tree_progress *progress)
{
    int64_t now = now_us();
    if (now - progress->shown_us < STATS_EACH_MS * INT64_C(1000))
        return;
    progress->shown_us = now;
    uint64_t moved = atomic_load(&progress->moved), done = atomic_load(&progress->done);
    int64_t total = progress->counted ? (int64_t)progress->total : -1;
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

/* True if the copy skips this entry and its subtree. Matches walk() of the source. */
static bool passed_over(const struct tree_progress *progress, const FTSENT *entry)
{
    bool folder = entry->fts_info == FTS_D;
    return (folder && (!progress->options->recursive ||
                       tree_target_is(&progress->target, entry->fts_statp))) ||
           (entry->fts_level > 0 && part_is(entry->fts_name));
}

/* Add the size of one source to the total. Return -1 if it cannot be counted. */
static int count_source(struct tree_progress *progress, const char *given)
{
    char *name = agent_work_file(given);
    size_t length = strlen(name);
    bool follow = !progress->options->recursive || name[length - 1] == '/';
    FTS *walk = fts_open((char *[]){name, NULL},
                         FTS_PHYSICAL | FTS_NOCHDIR | (follow ? FTS_COMFOLLOW : 0), NULL);
    FTSENT *entry;
    int result = 0;
    while (walk && result == 0 && (entry = fts_read(walk))) {
        if (atomic_load(&progress->over) || entry->fts_errno == ENAMETOOLONG)
            result = -1;
        else if (entry->fts_info == FTS_D || entry->fts_info == FTS_F) {
            if (passed_over(progress, entry))
                fts_set(walk, entry, FTS_SKIP);
            else if (entry->fts_info == FTS_F)
                progress->total += (uint64_t)entry->fts_statp->st_size;
        }
        show(progress);
    }
    if (walk)
        fts_close(walk);
    free(name);
    return result;
}

static void *run(void *argument)
{
    struct tree_progress *progress = argument;
    struct pollfd woken = {progress->wake_fd, POLLIN, 0};
    int result = 0;
    for (size_t i = 0; i < progress->count && result == 0; i++)
        result = count_source(progress, progress->names[i]);
    progress->counted = result == 0;
    while (!atomic_load(&progress->over)) {
        show(progress);
        poll(&woken, 1, STATS_EACH_MS);
    }
    return NULL;
}

void tree_progress_open(struct tree_progress *progress, char **names, size_t count,
                        const struct rdcp_options *options,
                        const struct tree_target *target)
{
    *progress = (struct tree_progress){
        .names = names,
        .count = count,
        .options = options,
        .target = *target,
        .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .start_us = now_us(),
    };
    progress->shown_us = progress->start_us;
    if (progress->wake_fd < 0)
        return;
    progress->started = pthread_create(&progress->thread, NULL, run, progress) == 0;
    if (!progress->started)
        close(progress->wake_fd);
}

void tree_progress_at(struct tree_progress *progress, uint64_t done, uint64_t moved)
{
    atomic_store(&progress->done, done);
    atomic_store(&progress->moved, moved);
}

void tree_progress_clear(const struct tree_progress *progress)
{
    if (progress->started && !progress->options->json && say_ready(0))
        fputs(STATS_CLEAR, stderr);
}

void tree_progress_close(struct tree_progress *progress)
{
    if (!progress->started)
        return;
    atomic_store(&progress->over, true);
    eventfd_write(progress->wake_fd, 1);
    pthread_join(progress->thread, NULL);
    close(progress->wake_fd);
    tree_progress_clear(progress);
    progress->started = false;
}
