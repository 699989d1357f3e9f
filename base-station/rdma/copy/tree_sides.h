/* The sides of one copy of rdcp: its source and its sink. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "leash_work.h"

/* A side ends with 0; with this when all was settled and something was skipped or failed;
 * with 1 when the stream was cut. */
enum { TREE_SOME_FAILED = 4 };

struct rdcp_options {
    bool recursive, archive, verify, no_sync, verbose, json;
    bool checksum;    /* by content, not by size and time */
    bool hard_links, xattrs, acls;
    bool dry_run, delete, yes;
    bool sha256;
    bool progress; /* somebody sits at a terminal to see it */
    bool many;     /* more than one source: DST has to be a directory */
    bool manifest; /* the sink writes one on stdout */
    struct words exclude;
    bool back; /* the sink answers to LEASH_BACK_FD, and not to stdout */
};

/* Each runs one side to its end and returns an exit status. */
int tree_source(const struct rdcp_options *options, char **names, size_t count);
int tree_sink(const struct rdcp_options *options, const char *target, char **names,
              size_t count);

/* Compares the tree at `target` with a list of sums on stdin, both ways. `json`: ends with
 * a line that counts the files checked and the errors. */
int tree_check(const char *target, bool json);
