/* Metadata of a file or folder: see tree_attributes.h. */
#include "tree_attributes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Clamp years outside the range of an int64_t to its limits, 1677 and 2262. */
static int64_t ns_of(const struct timespec *when)
{
    int64_t ns;
    if (__builtin_mul_overflow((int64_t)when->tv_sec, INT64_C(1000000000), &ns) ||
        __builtin_add_overflow(ns, (int64_t)when->tv_nsec, &ns))
        return when->tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

struct timespec timespec_of(int64_t ns)
{
    struct timespec when = {ns / 1000000000, ns % 1000000000};
    if (when.tv_nsec < 0) { /* before 1970 */
        when.tv_sec--;
        when.tv_nsec += 1000000000;
    }
    return when;
}

void tree_attributes_of(struct tree_attributes *into, const struct stat *state)
{
    *into = (struct tree_attributes){
        .mode = state->st_mode & 07777,
        .uid = state->st_uid,
        .gid = state->st_gid,
        .device = (uint32_t)state->st_dev,
        .inode = state->st_ino,
        .mtime_ns = ns_of(&state->st_mtim),
        .atime_ns = ns_of(&state->st_atim),
    };
}

enum { VALUE_MOST = 64 << 10 }; /* Linux's own limit, of the list of names too */

static bool is_acl(const char *name)
{
    return strncmp(name, "system.posix_acl_", 17) == 0;
}

/* Among the other attributes, any user may set user.*; only root may set the other kinds. */
static bool wanted(const struct rdcp_options *options, const char *name)
{
    if (is_acl(name))
        return options->acls;
    return options->xattrs && strncmp(name, "system.", 7) != 0 &&
           tree_is_name(name, strlen(name)) &&
           (geteuid() == 0 || strncmp(name, "user.", 5) == 0);
}

/* Collect the names of the attributes of `fd` to copy. Return -1 with errno on failure. */
static int names_of(int fd, const struct rdcp_options *options, struct words *names)
{
    char all[VALUE_MOST + 1];
    ssize_t length = flistxattr(fd, all, VALUE_MOST);
    for (ssize_t at = 0; at < length; at += (ssize_t)strlen(all + at) + 1)
        if (wanted(options, all + at))
            words_add(names, all + at);
    return length < 0 && errno != ENOTSUP ? -1 : 0;
}

int tree_xattr_send(struct tree_line *line, const struct rdcp_options *options, int fd)
{
    struct words names = {0};
    uint8_t value[VALUE_MOST];
    int result = names_of(fd, options, &names);
    for (size_t i = 0; i < names.count && result == 0; i++) {
        struct tree_record record = {.kind = TREE_XATTR, .bytes = value};
        ssize_t got = fgetxattr(fd, names.word[i], value, sizeof value);
        memcpy(record.name, names.word[i], strlen(names.word[i]));
        record.length = (uint32_t)got;
        if (got >= 0)
            tree_write(line, &record);
        else if (errno != ENODATA)
            result = -1;
    }
    words_close(&names);
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

/* Give `fd` exactly these ACLs, or exactly these other attributes. Return -1 with errno. */
static int apply(const struct tree_xattr *list, const struct rdcp_options *options, int fd,
                 bool acls)
{
    struct words names = {0};
    uint8_t value[VALUE_MOST];
    if (acls ? !options->acls : !options->xattrs)
        return 0;
    int result = names_of(fd, options, &names);
    for (size_t i = 0; i < names.count && result == 0; i++)
        if (is_acl(names.word[i]) == acls && !is_among(list, names.word[i]))
            result = fremovexattr(fd, names.word[i]);
    for (; list && result == 0; list = list->next) {
        if (is_acl(list->name) != acls)
            continue;
        ssize_t got = fgetxattr(fd, list->name, value, sizeof value);
        if (got != (ssize_t)list->length || memcmp(value, list->value, (size_t)got) != 0)
            result = fsetxattr(fd, list->name, list->value, list->length, 0);
    }
    words_close(&names);
    return result;
}

/*
 * Set extended attributes before the mode, because the mode might forbid writing them. Set ACLs
 * after the mode, because changing the mode would change them. If the owner could not be set, do
 * not set the set-uid and set-gid bits either.
 */
struct tree_lost tree_keep(int fd, const struct tree_attributes *to,
                           const struct tree_xattr *xattrs,
                           const struct rdcp_options *options)
{
    struct timespec times[2] = {timespec_of(to->atime_ns), timespec_of(to->mtime_ns)};
    struct tree_lost lost = {0};
    struct stat state;
    bool owned = options->archive;
    if (apply(xattrs, options, fd, false) < 0)
        lost = (struct tree_lost){"extended attributes", errno};
    if (owned && fchown(fd, to->uid, to->gid) < 0) {
        lost = (struct tree_lost){"owner and group", errno};
        if (errno == EPERM && fchown(fd, (uid_t)-1, to->gid) == 0)
            lost.what = "owner";
        owned = false;
    }
    mode_t mode = to->mode & (owned ? 07777 : 0777);
    if ((fstat(fd, &state) < 0 || (state.st_mode & 07777) != mode) && fchmod(fd, mode) < 0)
        lost = (struct tree_lost){"mode", errno};
    if (apply(xattrs, options, fd, true) < 0)
        lost = (struct tree_lost){"access control list", errno};
    if (futimens(fd, times) < 0)
        lost = (struct tree_lost){"time", errno};
    return lost;
}
