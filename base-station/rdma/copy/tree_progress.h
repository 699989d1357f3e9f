/* How far a copy is, for who sits at a terminal: bytes, rate, share and time left. What
 * there is to copy is counted by a thread of its own, so that the copy begins at once. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "tree_sides.h"

/* Where a copy goes, if that is on this machine: nothing there is copied. */
struct tree_target {
    uint64_t device, inode; /* 0: it is on another */
};

bool tree_target_is(const struct tree_target *target, const struct stat *state);

struct tree_progress {
    char **names; /* the sources, as asked for; not owned */
    size_t count;
    const struct rdcp_options *options;
    struct tree_target target;

    pthread_t thread;
    bool started;
    int wake_fd;
    int64_t start_us, shown_us;
    uint64_t total;
    bool counted; /* all of it is in `total` */
    atomic_uint_fast64_t done, moved;
    atomic_bool over;
};

/* Begins to count and to show. Without it nothing is shown; nor where it fails. */
void tree_progress_open(struct tree_progress *progress, char **names, size_t count,
                        const struct rdcp_options *options,
                        const struct tree_target *target);

/* So much of the sources is done, and so much of that was moved: the rest are holes, and
 * what the sink had before. */
void tree_progress_at(struct tree_progress *progress, uint64_t done, uint64_t moved);

/* Takes the line away, for another. */
void tree_progress_clear(const struct tree_progress *progress);
void tree_progress_close(struct tree_progress *progress);
