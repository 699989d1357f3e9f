/* Metadata of a file or folder: mode and times. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "tree_io.h"

void tree_attributes_of(struct tree_attributes *into, const struct stat *state);
struct timespec timespec_of(int64_t ns);

/* Metadata that could not be kept, and errno. NULL if everything was kept. */
struct tree_lost {
    const char *what;
    int error;
};

/* Apply these attributes to the open file or folder `fd`. */
struct tree_lost tree_keep(int fd, const struct tree_attributes *to);
