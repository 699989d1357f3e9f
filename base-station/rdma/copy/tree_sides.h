/* The sides of one copy of rdcp: its source, its sink and the list of parts. */
#ifndef TREE_SIDES_H
#define TREE_SIDES_H

#include <stdbool.h>
#include <stddef.h>

struct rdcp_options {
    bool recursive, archive, verify, no_sync, verbose;
    bool progress; /* somebody sits at a terminal to see it */
    bool many; /* more than one source: DST has to be a directory */
};

/* Each runs one side to its end and returns an exit status. */
int tree_source(const struct rdcp_options *options, char **names, size_t count);
int tree_sink(const struct rdcp_options *options, const char *target, char **names,
              size_t count);
int tree_parts(const char *target, char **names, size_t count);

#endif
