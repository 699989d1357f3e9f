/* Where DST is: which folder the names of a stream go into, as cp decides. */
#ifndef TREE_BASE_H
#define TREE_BASE_H

#include <stdbool.h>
#include <sys/stat.h>

/* A folder that is being filled: no one else comes in, and the sticky bit, which
 * nothing here has otherwise, tells the next run that its attributes are to come. */
enum { TREE_UNFINISHED = 01700 };
bool tree_is_unfinished(const struct stat *state);

struct tree_base {
    int fd;       /* the folder; -1 with errno */
    char *rename; /* what the one source is called there; "" = the folder is its copy,
                     which a run before began; NULL = it is called as it is */
};

/* Into DST if that is a directory, else beside it, if there is a `single` source and it
 * is a `folder` or DST does not end in a slash. 0, or -1 with errno. */
int tree_base_open(struct tree_base *base, const char *target, bool single,
                   bool folder);
void tree_base_close(struct tree_base *base);

#endif
