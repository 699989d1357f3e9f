/* The folders that a sink fills. One stays open until the last file in it is settled. */
#ifndef TREE_FOLDER_H
#define TREE_FOLDER_H

#include "tree_io.h"
#include "tree_sides.h"
#include "tree_xattr.h"

enum tree_keep { KEEP_NOTHING, KEEP_TIMES, KEEP_ALL };

struct tree_folder {
    struct tree_folder *up; /* NULL: where the names at the top go */
    int fd;                 /* -1: nothing can go in */
    unsigned uses;          /* folders and files within, and the stream while it is in it */
    bool absent;            /* in a dry run: it would be made */
    bool had_parts;         /* when it was entered; true where nobody has looked */
    enum tree_keep keep;
    struct tree_attributes attributes;
    struct tree_xattr *xattrs;
    struct bytes seen; /* of --delete: each name that came, and a NUL */
    char name[TREE_NAME_MOST + 1]; /* "" = DST itself */
};

/* "a/b/name", from the top; to free. */
char *tree_folder_path(const struct tree_folder *folder, const char *name);

/* Says on stderr what is wrong about a name in it. */
void tree_folder_complain(const struct tree_folder *folder, uint64_t *errors,
                          const char *target, const char *name, const char *what);

/* Opens or makes what is below `up`; a dry run makes nothing. `fd` -1 and
 * `*why` where it cannot be. */
struct tree_folder *tree_folder_enter(struct tree_folder *up, const char *name,
                                      const struct tree_attributes *of,
                                      const struct rdcp_options *options,
                                      const char **why);

/* How the attributes of what is open at `fd` go: which of them could not be kept, in
 * `*error` why; NULL: all are. */
const char *tree_keep_attributes(int fd, const struct tree_attributes *to,
                                 const struct tree_xattr *xattrs,
                                 const struct rdcp_options *options, int *error);

/* Names in the folder that did not come: each goes to `found`. */
void tree_folder_extra(struct tree_folder *folder, const struct rdcp_options *options,
                       struct words *found);

/* Removes what `path` names, and all below it, through no link. -1 with errno. */
int tree_remove(int base, const char *path);

void tree_folder_free(struct tree_folder *folder);

#endif
