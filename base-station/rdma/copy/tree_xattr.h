/* Extended attributes (-X) and access control lists (-A), which Linux keeps as such. */
#ifndef TREE_XATTR_H
#define TREE_XATTR_H

#include "tree_io.h"
#include "tree_sides.h"

struct tree_xattr {
    struct tree_xattr *next;
    uint32_t length;
    char name[TREE_NAME_MOST + 1];
    uint8_t value[];
};

/* Writes what `fd` has as records. -1 with errno; 1: the stream has no reader. */
int tree_xattr_send(struct tree_line *line, const struct rdcp_options *options, int fd);

void tree_xattr_take(struct tree_xattr **list, const struct tree_record *record);
void tree_xattr_close(struct tree_xattr **list);

/* Gives `fd` these and no others, of ACLs or of the rest: those are set before the mode,
 * which might forbid it, ACLs after it, which would change them. -1 with errno. */
int tree_xattr_apply(const struct tree_xattr *list, const struct rdcp_options *options,
                     int fd, bool acls);

#endif
