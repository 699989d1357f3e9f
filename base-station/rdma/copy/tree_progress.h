/*
 * Progress of a copy for a terminal: bytes, rate, percentage and remaining time. A separate thread
 * counts the total, so that the copy starts at once.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "tree_sides.h"

/* Target folder of the copy, if it is on this machine: the copy skips it. */
struct tree_target {
    uint64_t device, inode; /* 0: the target is on another machine */
};

bool tree_target_is(const struct tree_target *target, const struct stat *state);

struct tree_progress {
    char **names; /* source names as given; not owned */
    size_t count;
    const struct rdcp_options *options;
    struct tree_target target;

    pthread_t thread;
    bool started;
    int wake_fd;
    int64_t start_us, shown_us;
    uint64_t total;
    bool counted; /* `total` is final */
    atomic_uint_fast64_t done, moved;
    atomic_bool over;
};

/* Start counting and showing. Progress is optional: on failure nothing is shown. */
void tree_progress_open(struct tree_progress *progress, char **names, size_t count,
                        const struct rdcp_options *options,
                        const struct tree_target *target);

/*
 * Set the bytes that are done and the bytes that were sent. The difference consists of holes and of
 * bytes that the sink already had.
 */
void tree_progress_at(struct tree_progress *progress, uint64_t done, uint64_t moved);

/* Clear the progress line before another line is printed. */
void tree_progress_clear(const struct tree_progress *progress);
void tree_progress_close(struct tree_progress *progress);
