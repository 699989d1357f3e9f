/* Extended attributes and access control lists: see tree_xattr.h. */
#include "tree_xattr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { VALUE_MOST = 64 << 10 }; /* Linux's own limit, of the list of names too */

static bool is_acl(const char *name)
{
    return strncmp(name, "system.posix_acl_", 17) == 0;
}

/* Of the rest, user.* is everybody's and other kinds are root's. */
static bool wanted(const struct rdcp_options *options, const char *name)
{
    if (is_acl(name))
        return options->acls;
    return options->xattrs && strncmp(name, "system.", 7) != 0 &&
           (geteuid() == 0 || strncmp(name, "user.", 5) == 0);
}

static ssize_t list_names(int fd, char **names)
{
    *names = allocated(malloc(VALUE_MOST + 1));
    ssize_t length = flistxattr(fd, *names, VALUE_MOST);
    if (length < 0 && errno == ENOTSUP)
        length = 0;
    return length;
}

int tree_xattr_send(struct tree_line *line, const struct rdcp_options *options, int fd)
{
    char *names = NULL;
    uint8_t *value = allocated(malloc(VALUE_MOST));
    ssize_t length = list_names(fd, &names);
    int result = length < 0 ? -1 : 0;
    for (ssize_t at = 0; at < length && result == 0; at += (ssize_t)strlen(names + at) + 1) {
        struct tree_record record = {.kind = TREE_XATTR, .bytes = value};
        size_t size = strlen(names + at);
        if (!wanted(options, names + at) || !tree_is_name(names + at, size))
            continue;
        memcpy(record.name, names + at, size);
        ssize_t got = fgetxattr(fd, names + at, value, VALUE_MOST);
        record.length = (uint32_t)got;
        if (got >= 0)
            result = tree_write(line, &record) < 0 ? 1 : 0;
        else if (errno != ENODATA)
            result = -1;
    }
    free(names);
    free(value);
    return result;
}

void tree_xattr_take(struct tree_xattr **list, const struct tree_record *record)
{
    struct tree_xattr *one = allocated(malloc(sizeof *one + record->length));
    one->next = *list;
    one->length = record->length;
    memcpy(one->name, record->name, sizeof one->name);
    memcpy(one->value, record->bytes, record->length);
    *list = one;
}

void tree_xattr_close(struct tree_xattr **list)
{
    while (*list) {
        struct tree_xattr *next = (*list)->next;
        free(*list);
        *list = next;
    }
}

static bool is_among(const struct tree_xattr *list, const char *name)
{
    while (list && strcmp(list->name, name) != 0)
        list = list->next;
    return list;
}

int tree_xattr_apply(const struct tree_xattr *list, const struct rdcp_options *options,
                     int fd, bool acls)
{
    char *names = NULL;
    if (acls ? !options->acls : !options->xattrs)
        return 0;
    ssize_t length = list_names(fd, &names);
    uint8_t *value = allocated(malloc(VALUE_MOST));
    int result = length < 0 ? -1 : 0;
    for (ssize_t at = 0; at < length && result == 0; at += (ssize_t)strlen(names + at) + 1)
        if (wanted(options, names + at) && is_acl(names + at) == acls &&
            !is_among(list, names + at))
            result = fremovexattr(fd, names + at);
    for (; list && result == 0; list = list->next) {
        if (is_acl(list->name) != acls)
            continue;
        ssize_t got = fgetxattr(fd, list->name, value, VALUE_MOST);
        if (got != (ssize_t)list->length || memcmp(value, list->value, (size_t)got) != 0)
            result = fsetxattr(fd, list->name, list->value, list->length, 0);
    }
    free(names);
    free(value);
    return result;
}
