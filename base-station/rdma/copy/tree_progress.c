/* How far a copy is: see tree_progress.h. */
#include "tree_progress.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "leash_work.h"
#include "stats.h"
#include "tree_part.h"

enum { DEPTH_MOST = 64 }; /* of open folders; the copy needs as many again */

bool tree_target_is(const struct tree_target *target, const struct stat *state)
{
    return target->here && state->st_dev == target->device &&
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
    if (progress->options->json && total >= 0)
        fprintf(stderr, "{\"moved\": %llu, \"done\": %llu, \"total\": %lld}\n",
                (unsigned long long)moved, (unsigned long long)done, (long long)total);
    else if (progress->options->json)
        fprintf(stderr, "{\"moved\": %llu, \"done\": %llu}\n",
                (unsigned long long)moved, (unsigned long long)done);
    else
        stats_show(moved, done, total, now - progress->start_us);
}

static int count_folder(struct tree_progress *progress, int fd, int depth);

/* Counts what the source's walk() would copy. -1: it is not to be known. */
static int count_name(struct tree_progress *progress, int folder, const char *name,
                      bool follow, int depth)
{
    struct stat state;
    int no_link = follow ? 0 : AT_SYMLINK_NOFOLLOW;
    if (atomic_load(&progress->over))
        return -1;
    show(progress);
    if (fstatat(folder, name, &state, no_link) < 0)
        return 0;
    if (S_ISREG(state.st_mode))
        progress->total += (uint64_t)state.st_size;
    if (!S_ISDIR(state.st_mode) || !progress->options->recursive ||
        tree_target_is(&progress->target, &state))
        return 0;
    if (depth == DEPTH_MOST)
        return -1;
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC |
                                      (follow ? 0 : O_NOFOLLOW));
    return fd < 0 ? 0 : count_folder(progress, fd, depth + 1);
}

/* Closes `fd`. */
static int count_folder(struct tree_progress *progress, int fd, int depth)
{
    DIR *folder = fdopendir(fd);
    struct dirent *entry;
    int result = 0;
    if (!folder) {
        close(fd);
        return 0;
    }
    while (result == 0 && (entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !part_is(entry->d_name))
            result = count_name(progress, fd, entry->d_name, false, depth);
    closedir(folder);
    return result;
}

static void count_all(struct tree_progress *progress)
{
    int result = 0;
    for (size_t i = 0; i < progress->count && result == 0; i++) {
        char *name = leash_work_file(progress->names[i]);
        bool slash = name[strlen(name) - 1] == '/';
        result =
            count_name(progress, AT_FDCWD, name, !progress->options->recursive || slash, 0);
        free(name);
    }
    progress->counted = result == 0 && !progress->options->exclude.count;
}

static void *run(void *argument)
{
    struct tree_progress *progress = argument;
    struct pollfd woken = {progress->wake_fd, POLLIN, 0};
    count_all(progress);
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
