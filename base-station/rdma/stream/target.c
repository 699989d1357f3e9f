/* Where the stream goes to: see target.h. */
#include "target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "descriptors.h"

enum { LINKS_MOST = 40 };

#define HEX "0123456789abcdef"
#define PART ".part" /* .NAME.XXXXXXXX.part */

static int refuse(struct trouble *trouble, const char *what, const char *name)
{
    char safe[200];
    visible(safe, sizeof safe, name);
    return fault(trouble, "%s %s: %m", what, safe);
}

static int folder_of(const char *path, char into[PATH_MAX])
{
    char copy[PATH_MAX];
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return snprintf(into, PATH_MAX, "%s", dirname(copy)) < PATH_MAX ? 0 : -1;
}

static int copy_path(struct target *target, const char *name)
{
    errno = ENAMETOOLONG;
    return snprintf(target->path, sizeof target->path, "%s", name) <
                   (int)sizeof target->path
               ? 0
               : -1;
}

/* Follows symlinks whose last target is absent; realpath(3) would refuse them. */
static int follow(struct target *target, const char *name)
{
    if (copy_path(target, name) < 0)
        return -1;
    for (int links = 0; links < LINKS_MOST; links++) {
        char text[PATH_MAX], folder[PATH_MAX], next[2 * PATH_MAX];
        ssize_t length = readlink(target->path, text, sizeof text - 1);
        if (length < 0)
            return 0;
        text[length] = '\0';
        if (folder_of(target->path, folder) < 0)
            return -1;
        int need = text[0] == '/' ? snprintf(next, sizeof next, "%s", text)
                                  : snprintf(next, sizeof next, "%s/%s", folder, text);
        if (need >= PATH_MAX)
            break;
        memcpy(target->path, next, (size_t)need + 1);
    }
    errno = ELOOP;
    return -1;
}

static int check_writable(struct target *target, struct trouble *trouble)
{
    char folder[PATH_MAX];
    if (target->exists && access(target->path, W_OK) < 0)
        return refuse(trouble, "cannot write", target->path);
    if (!target->replaces)
        return 0;
    if (folder_of(target->path, folder) < 0 || access(folder, W_OK | X_OK) < 0)
        return refuse(trouble, "cannot make a file beside", target->path);
    return 0;
}

int target_find(struct target *target, const char *name, int fd, bool sync,
                struct trouble *trouble)
{
    struct stat found;
    *target = (struct target){.fd = fd, .sync = sync};
    if (!name) {
        if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
            errno = EBADF; /* also one that was closed: see descriptors.h */
        else if (fstat(fd, &target->old) == 0)
            errno = 0;
        if (errno)
            return refuse(trouble, "cannot use", "stdout");
        bool keeps = S_ISREG(target->old.st_mode) || S_ISBLK(target->old.st_mode);
        if (sync && !keeps)
            return troubled(trouble, EXIT_USAGE,
                            "--sync: stdout is not a file that could be synced");
        return 0;
    }
    target->fd = -1;
    target->exists = stat(name, &target->old) == 0;
    if (!target->exists && (errno != ENOENT || !*name))
        return refuse(trouble, "cannot use", *name ? name : "\"\"");
    if (target->exists ? S_ISDIR(target->old.st_mode) : name[strlen(name) - 1] == '/') {
        errno = EISDIR;
        return refuse(trouble, "cannot write to", name);
    }
    /* What a link in /proc leads to need not have that name, or any: as /dev/stdout. */
    bool in_place = target->exists && !S_ISREG(target->old.st_mode);
    if (in_place ? copy_path(target, name) < 0 : follow(target, name) < 0)
        return refuse(trouble, "cannot use", name);
    if (target->exists &&
        (stat(in_place ? name : target->path, &found) < 0 ||
         found.st_dev != target->old.st_dev || found.st_ino != target->old.st_ino))
    {
        errno = ESTALE; /* it has no name any more */
        return refuse(trouble, "cannot replace what this leads to:", name);
    }
    target->replaces = !target->exists || S_ISREG(target->old.st_mode);
    if (sync && !target->replaces && !S_ISBLK(target->old.st_mode))
        return troubled(trouble, EXIT_USAGE, "--sync: %s cannot be synced", name);
    return check_writable(target, trouble);
}

static int open_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    shut(&fd);
    return -1;
}

/* The mode and owner of the old file, or those of any new one. */
static int dress(struct target *target)
{
    mode_t mask = umask(0);
    umask(mask);
    if (!target->exists)
        return fchmod(target->fd, 0666 & ~mask);
    struct stat now;
    if (fstat(target->fd, &now) < 0)
        return -1;
    bool same = now.st_uid == target->old.st_uid && now.st_gid == target->old.st_gid;
    same = same || fchown(target->fd, target->old.st_uid, target->old.st_gid) == 0;
    if (!same) {
        char safe[200];
        const char *why = strerror(errno);
        bool group = fchown(target->fd, (uid_t)-1, target->old.st_gid) == 0;
        visible(safe, sizeof safe, target->path);
        say("%s will belong to another owner%s: %s", safe, group ? "" : " and group", why);
    }
    /* A set-uid bit was meant for the old owner. */
    return fchmod(target->fd, target->old.st_mode & (same ? 07777 : 0777));
}

/* Removes what runs that were killed have left of the same target: what nobody locks. */
static void remove_stale(const char *folder, const char *head)
{
    DIR *entries = opendir(folder);
    size_t length = strlen(head);
    struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        const char *rest = entry->d_name + length;
        if (strncmp(entry->d_name, head, length) != 0 || strspn(rest, HEX) != 8 ||
            strcmp(rest + 8, PART) != 0)
            continue;
        struct stat state;
        int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
        int fd = openat(dirfd(entries), entry->d_name, flags);
        if (fd >= 0 && fstat(fd, &state) == 0 && S_ISREG(state.st_mode) &&
            flock(fd, LOCK_EX | LOCK_NB) == 0)
            unlinkat(dirfd(entries), entry->d_name, 0);
        shut(&fd);
    }
    if (entries)
        closedir(entries);
}

/* A file without a name, which ends with its writer however that ends; target_publish
 * names it through /proc. -1 where the file system has none, as on NFS. */
static int open_nameless(const char *folder)
{
    char link[40];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (fd < 0 || access(link, F_OK) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The lock says that somebody is at work. Between opening and locking, another run may
 * have taken the file for one that was left behind: -1 then, too. */
static int open_named(const char *path)
{
    struct stat state;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    flock(fd, LOCK_EX | LOCK_NB);
    if (fstat(fd, &state) == 0 && state.st_nlink > 0)
        return fd;
    close(fd);
    errno = ENOENT;
    return -1;
}

static int open_temporary(struct target *target)
{
    char folder[PATH_MAX], copy[PATH_MAX], head[216];
    uint32_t number;
    if (folder_of(target->path, folder) < 0 ||
        getrandom(&number, sizeof number, 0) != sizeof number)
        return -1;
    memcpy(copy, target->path, sizeof copy);
    /* The name must stay below NAME_MAX, whatever the target's is. */
    snprintf(head, sizeof head, ".%.200s.", basename(copy));
    if (snprintf(target->temporary, sizeof target->temporary, "%s/%s%08x" PART, folder,
                 head, (unsigned)number) < 0)
        return -1;
    remove_stale(folder, head);
    target->fd = open_nameless(folder);
    target->nameless = target->fd >= 0;
    if (target->nameless)
        flock(target->fd, LOCK_EX | LOCK_NB); /* for when it gets its name */
    else
        target->fd = open_named(target->temporary);
    if (target->fd < 0)
        target->temporary[0] = '\0';
    return target->fd;
}

int target_open(struct target *target, struct trouble *trouble)
{
    if (!target->path[0])
        return 0;
    target->owned = true;
    if (target->replaces) {
        if (open_temporary(target) < 0)
            return refuse(trouble, "cannot make a file beside", target->path);
        return dress(target) < 0 ? refuse(trouble, "cannot prepare", target->path) : 0;
    }
    if (S_ISSOCK(target->old.st_mode))
        target->fd = open_socket(target->path);
    else /* a FIFO's open waits for its reader, and a signal may end the wait */
        do
            target->fd = open(target->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        while (target->fd < 0 && errno == EINTR);
    return target->fd < 0 ? refuse(trouble, "cannot open", target->path) : 0;
}

static int sync_folder(const char *path)
{
    char folder[PATH_MAX];
    if (folder_of(path, folder) < 0)
        return -1;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int result = fsync(fd);
    shut(&fd);
    return result;
}

/* Gives the file of `fd` its temporary name, and then the target's: a link replaces
 * nothing, a rename does. What is there now need not be what was there at first. */
static int put_in_place(struct target *target, int fd)
{
    char link[40];
    struct stat now;
    if (lstat(target->path, &now) == 0 && !S_ISREG(now.st_mode)) {
        errno = EEXIST;
        return -1;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (target->nameless &&
        linkat(AT_FDCWD, link, AT_FDCWD, target->temporary, AT_SYMLINK_FOLLOW) < 0)
        return -1;
    if (rename(target->temporary, target->path) < 0)
        return -1;
    target->temporary[0] = '\0';
    return 0;
}

static const char *name_of(const struct target *target)
{
    return target->path[0] ? target->path : "stdout";
}

int target_sync(struct target *target, struct trouble *trouble)
{
    if (target->sync && fsync(target->fd) < 0)
        return refuse(trouble, "cannot sync", name_of(target));
    return 0;
}

int target_publish(struct target *target, struct trouble *trouble)
{
    const char *name = name_of(target);
    int kept = -1; /* what the file is named and locked by, once it is closed */
    if (target->temporary[0] && (kept = fcntl(target->fd, F_DUPFD_CLOEXEC, 0)) < 0)
        return refuse(trouble, "cannot publish", name);
    if (target->owned) { /* NFS and quotas may say only now that there is no room */
        int fd = target->fd;
        target->fd = -1;
        target->owned = false;
        if (close(fd) < 0)
            refuse(trouble, "cannot close", name);
    }
    if (!trouble->status && kept >= 0 && put_in_place(target, kept) < 0)
        refuse(trouble, "cannot put the new file in place of", name);
    if (!trouble->status && kept >= 0 && target->sync && sync_folder(target->path) < 0)
        refuse(trouble, "cannot sync the folder of", name);
    shut(&kept);
    return trouble->status ? -1 : 0;
}

void target_discard(struct target *target)
{
    if (target->temporary[0])
        unlink(target->temporary);
}

void target_close(struct target *target)
{
    target_discard(target);
    target->temporary[0] = '\0';
    if (target->owned && target->fd >= 0)
        close(target->fd);
    target->fd = -1;
}
