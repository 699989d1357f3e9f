/* Where DST is: see tree_base.h. */
#include "tree_base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "leash_work.h"

bool tree_is_unfinished(const struct stat *state)
{
    /* A folder may have got the set-group-id bit from the one above. */
    return S_ISDIR(state->st_mode) && state->st_uid == geteuid() &&
           (state->st_mode & 05777) == TREE_UNFINISHED;
}

/* The last component of `path` is the name of what is to come; cuts it off. */
static int open_above(struct tree_base *base, char *path, bool folder)
{
    size_t length = strlen(path);
    bool slash = path[length - 1] == '/';
    while (length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
    char *name = strrchr(path, '/');
    if (!name || (slash && !folder)) {
        errno = ENOTDIR;
        return -1;
    }
    base->rename = allocated(strdup(name + 1));
    name[name == path] = '\0';
    base->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return base->fd < 0 ? -1 : 0;
}

int tree_base_open(struct tree_base *base, const char *target, bool single,
                   bool folder)
{
    char *path = leash_work_file(target);
    struct stat state;
    int result = -1;
    *base = (struct tree_base){.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (base->fd >= 0) {
        result = 0;
        if (single && folder && fstat(base->fd, &state) == 0 &&
            tree_is_unfinished(&state))
            base->rename = allocated(strdup(""));
    } else if (errno == ENOENT || errno == ENOTDIR) {
        if (single)
            result = open_above(base, path, folder);
        else
            errno = ENOTDIR;
    }
    free(path);
    return result;
}

void tree_base_close(struct tree_base *base)
{
    shut(&base->fd);
    free(base->rename);
    *base = (struct tree_base){.fd = -1};
}
