/* The folders that a sink fills. One stays open until the last file in it is settled. */
#ifndef TREE_FOLDER_H
#define TREE_FOLDER_H

#include <stdbool.h>
#include <sys/stat.h>

#include "tree_io.h"
#include "tree_sides.h"

enum tree_keep { KEEP_NOTHING, KEEP_TIMES, KEEP_ALL };

struct tree_folder {
    struct tree_folder *up; /* NULL: where the names at the top go */
    int fd;                 /* -1: nothing can go in */
    unsigned uses;          /* folders and files within, and the stream while it is in it */
    bool absent;            /* in a dry run: it would be made */
    bool made;              /* it was not there: nor is what comes into it */
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

/* A folder that is being filled: no one else comes in, and the sticky bit, which
 * nothing here has otherwise, tells the next run that its attributes are to come. */
enum { TREE_UNFINISHED = 01700 };

/* Where DST is: which folder the names of a stream go into, as cp decides. */
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

/* Files with more names (-H): where the first one is, and which wait for it. */
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
