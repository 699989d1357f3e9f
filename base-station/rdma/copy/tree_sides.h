/* The sides of one copy of rdcp: its source and its sink. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent_protocol.h"

/*
 * Exit status of a side: 0 on success, 1 if the stream was cut, and these: the stream completed, but
 * an entry was skipped or failed; DST or the stream was refused, and would be again.
 */
enum { TREE_SOME_FAILED = 4, TREE_IN_VAIN };

struct rdcp_options {
    bool recursive, verify, no_sync, verbose, json;
    bool checksum;    /* compare content instead of size and time */
    bool sha256;
    bool progress; /* stderr is a terminal: show progress */
    bool back; /* the sink answers on AGENT_BACK_FD instead of stdout */
};

/* Each runs one side to completion and returns an exit status. */
int tree_source(const struct rdcp_options *options, char **names, size_t count);
int tree_sink(const struct rdcp_options *options, const char *target, char **names,
              size_t count);

/*
 * Compare the tree at `target` with a list of checksums on stdin, in both directions. With `json`,
 * end with a line that counts the checked files and the errors.
 */
int tree_check(const char *target, bool json);
