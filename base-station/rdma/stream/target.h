/* Destination of the stream: a regular file, which gets its new content by rename once all of it is
 * written, or a descriptor that is written in place. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "error.h"

struct target {
    const char *name; /* as given; NULL = stdout or a command; not owned */
    int folder_fd;    /* folder of the file to replace by rename; -1: write `fd` */
    char file[NAME_MAX + 1];      /* name in the folder, symlinks followed */
    char temporary[NAME_MAX + 1]; /* name of the new file; empty = not named */
    struct stat old;
    bool exists, sync;
    bool nameless; /* `temporary` has not been linked yet */
    int fd;
    bool owned; /* close fd at the end */
};

#define TARGET_NONE {.folder_fd = -1, .fd = -1}

/* Check the target without changing it. `name` NULL: write `fd` directly. */
int target_find(struct target *target, const char *name, int fd, bool sync, struct error *error);

/* Create the temporary file. */
int target_open(struct target *target, struct error *error);

/* Sync the fully written file, if requested. */
int target_sync(struct target *target, struct error *error);

/* Move the file into place. Sync the folder, too, if requested. */
int target_publish(struct target *target, struct error *error);

/* Remove an unpublished file. Another thread may call this while the writer is blocked in write(2);
 * the descriptor stays open then. */
void target_discard(struct target *target);
void target_close(struct target *target);
