/* Where the stream goes to. A file that is absent or regular gets its new content by
 * rename, once all of it is there; a device, FIFO or socket is written in place. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "trouble.h"

struct target {
    const char *name; /* as it was given; NULL = stdout or a command; not owned */
    int folder_fd;    /* where the file is that gets its content by rename; -1 = none is */
    char file[NAME_MAX + 1];      /* its name in there, symlinks followed */
    char temporary[NAME_MAX + 1]; /* that of the new one; empty = there is none */
    struct stat old;
    bool exists, sync;
    bool nameless; /* `temporary` is yet to be linked to it */
    int fd;
    bool owned; /* fd is ours to close */
};

#define TARGET_NONE {.folder_fd = -1, .fd = -1}

/* Looks at the name and changes nothing. `name` NULL: `fd` is written as it is. */
int target_find(struct target *target, const char *name, int fd, bool sync,
                struct trouble *trouble);

/* Makes the temporary file, or opens the device; a FIFO's open waits for its reader. */
int target_open(struct target *target, struct trouble *trouble);

/* All has been written: syncs it, if asked to. */
int target_sync(struct target *target, struct trouble *trouble);

/* Puts it in its place; the folder is synced, too, if asked to. */
int target_publish(struct target *target, struct trouble *trouble);

/* Removes what was not published. May be called by another thread than the writer's
 * while that one waits in write(2): it closes nothing then. */
void target_discard(struct target *target);
void target_close(struct target *target);
