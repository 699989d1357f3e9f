/* Lines of rdcp on stderr: errors, and the progress of a copy. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tree.h"

/* Print one line: rdcp: WHAT: OF. Control characters in names are quoted. */
void tree_say(const char *what, const char *of);

/* Two texts of tree_error() with their own error codes. */
#define TREE_DIFFERS "its content is not what the list says"
#define TREE_UNLISTED "is not in the list"

/* Count an error and print it: rdcp: PATH: what. After tree_errors_json(true) as JSON: {"path":
 * PATH, "code": CODE, "error": what}; CODE is "missing", "differs", "unlisted" or "failed". */
void tree_error(uint64_t *errors, const char *path, const char *what);
void tree_errors_json(bool json);

/* Progress of a copy, shown by its source: the source announces its files ahead of their bodies. */
struct tree_progress {
    const struct rdcp_options *options; /* NULL before the copy starts */
    int64_t start_us, shown_us;
    uint64_t moved;     /* bytes sent */
    uint64_t done;      /* bytes in files that were sent, or did not need to be */
    uint64_t announced; /* bytes in announced files */
    bool walked;        /* all files are announced: `announced` is the total */
};

/* True if a copy shows its progress: as a line on a terminal, or as lines of JSON. */
bool tree_progress_wanted(const struct rdcp_options *options);

void tree_progress_start(struct tree_progress *progress, const struct rdcp_options *options);

/* Show the progress; `more` bytes of the file that is being sent are done. Unless this is the last
 * time, do nothing if half a second has not passed since the previous one. */
void tree_progress_show(struct tree_progress *progress, uint64_t more, bool last);

/* Clear the progress line before another line is printed. */
void tree_progress_clear(const struct tree_progress *progress);
