/* Files with more names (-H): where the first one is, and which wait for it. */
#ifndef TREE_LINKS_H
#define TREE_LINKS_H

#include "tree_folder.h"

struct tree_links {
    struct tree_first {
        uint64_t number;
        char *path; /* from the top */
        enum { LINK_WAITS, LINK_PLACED, LINK_FAILED } state;
        struct stat file;
        struct words waiting; /* paths */
    } *row;
    size_t count, room;
};

void tree_links_add(struct tree_links *links, uint64_t number,
                    const struct tree_folder *folder, const char *name);

/* -1 for a number that was not added. */
int tree_links_take(struct tree_links *links, uint64_t number, int base,
                    const struct tree_folder *folder, const char *name, uint64_t *errors);

/* The first name is there, or (`file` NULL) will not be. */
void tree_links_settle(struct tree_links *links, uint64_t number, int base,
                       const struct stat *file, uint64_t *errors);
void tree_links_close(struct tree_links *links);

#endif
