/* Destination of the stream: see target.h. */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "descriptors.h"

enum { LINKS_MOST = 40 };

static int refuse(struct error *error, const char *what, const struct target *target)
{
    char safe[200];
    visible(safe, sizeof safe, !target->name ? "stdout" : *target->name ? target->name : "\"\"");
    return fault(error, "%s %s: %m", what, safe);
}

/* Open the folder of the target. Follow symlinks even if their final target is absent; realpath(3)
 * would fail for them. */
static int follow(struct target *target)
{
    char path[PATH_MAX];
    errno = ENAMETOOLONG;
    if (snprintf(path, sizeof path, "%s", target->name) >= (int)sizeof path)
        return -1;
    for (int links = 0; links < LINKS_MOST; links++) {
        char *slash = strrchr(path, '/');
        const char *file = slash ? slash + 1 : path, *folder = slash ? path : ".";
        if (slash == path)
            folder = "/";
        else if (slash)
            *slash = '\0';
        int from = target->folder_fd;
        target->folder_fd = openat(from < 0 ? AT_FDCWD : from, folder, O_PATH | O_CLOEXEC);
        shut(&from);
        if (target->folder_fd < 0)
            return -1;
        errno = *file ? ENAMETOOLONG : EISDIR;
        if (!*file || snprintf(target->file, sizeof target->file, "%s", file) >=
                          (int)sizeof target->file)
            return -1;
        ssize_t length = readlinkat(target->folder_fd, target->file, path, sizeof path - 1);
        if (length < 0)
            return 0;
        path[length] = '\0';
    }
    errno = ELOOP;
    return -1;
}

/* Check a descriptor that is written in place: stdout or /dev/null. */
static int find_open(struct target *target, struct error *error)
{
    errno = EBADF; /* also if it was closed: see descriptors.h */
    if ((fcntl(target->fd, F_GETFL) & O_ACCMODE) == O_RDONLY || fstat(target->fd, &target->old) < 0)
        return refuse(error, "cannot use", target);
    if (target->sync && !S_ISREG(target->old.st_mode) && !S_ISBLK(target->old.st_mode))
        return fault_status(error, EXIT_USAGE, "--sync: %s is not a file that could be synced",
                            target->name ? target->name : "stdout");
    return 0;
}

/* Find an absent or regular file, in a folder that allows new files. */
static int find_file(struct target *target, struct error *error)
{
    struct stat found;
    if (follow(target) < 0)
        return refuse(error, "cannot use", target);
    if (target->exists &&
        (fstatat(target->folder_fd, target->file, &found, 0) < 0 ||
         found.st_dev != target->old.st_dev || found.st_ino != target->old.st_ino)) {
        errno = ESTALE; /* for example a link in /proc to a file without a name */
        return refuse(error, "cannot replace what this leads to:", target);
    }
    if (target->exists && faccessat(target->folder_fd, target->file, W_OK, 0) < 0)
        return refuse(error, "cannot write", target);
    if (faccessat(target->folder_fd, ".", W_OK | X_OK, 0) < 0)
        return refuse(error, "cannot make a file beside", target);
    return 0;
}

int target_find(struct target *target, const char *name, int fd, bool sync, struct error *error)
{
    char safe[160];
    *target = (struct target){.name = name, .folder_fd = -1, .fd = name ? -1 : fd,
                              .sync = sync};
    if (!name)
        return find_open(target, error);
    target->exists = stat(name, &target->old) == 0;
    if (!target->exists && (errno != ENOENT || !*name))
        return refuse(error, "cannot use", target);
    mode_t mode = target->exists ? target->old.st_mode : S_IFREG;
    if (S_ISDIR(mode) || (!target->exists && name[strlen(name) - 1] == '/')) {
        errno = EISDIR;
        return refuse(error, "cannot write to", target);
    }
    if (S_ISREG(mode))
        return find_file(target, error);
    if (S_ISCHR(mode) && target->old.st_rdev == makedev(1, 3)) { /* /dev/null */
        target->fd = open(name, O_WRONLY | O_CLOEXEC);
        target->owned = true;
        return find_open(target, error);
    }
    visible(safe, sizeof safe, name);
    return fault(error, "%s is not a regular file: let a shell open it, as in rdrecv PORT >FILE "
                 "or rdpipe HOST:'cat >FILE'", safe);
}

/* Set the mode and owner of the old file, or the defaults of a new file. */
static int dress(struct target *target)
{
    mode_t mask = umask(0);
    umask(mask);
    if (!target->exists)
        return fchmod(target->fd, 0666 & ~mask);
    bool same = fchown(target->fd, target->old.st_uid, target->old.st_gid) == 0;
    if (!same) {
        char safe[200];
        int code = errno;
        bool group = fchown(target->fd, (uid_t)-1, target->old.st_gid) == 0;
        visible(safe, sizeof safe, target->name);
        say("%s will belong to another owner%s: %s", safe, group ? "" : " and group",
            strerror(code));
    }
    /* A set-uid bit applied to the old owner only. */
    return fchmod(target->fd, target->old.st_mode & (same ? 07777 : 0777));
}

/* Create the new file, without a name if the file system allows it: such a file disappears with its
 * writer. target_publish names it through /proc. NFS and FAT need a name. */
static int open_temporary(struct target *target)
{
    char link[40];
    uint32_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return -1;
    /* The name must stay below NAME_MAX, whatever the length of the target's name. */
    snprintf(target->temporary, sizeof target->temporary, ".%.200s.%08x.part", target->file,
             (unsigned)number);
    target->fd = openat(target->folder_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    snprintf(link, sizeof link, "/proc/self/fd/%d", target->fd);
    if (target->fd >= 0 && access(link, F_OK) < 0)
        shut(&target->fd);
    target->nameless = target->fd >= 0;
    if (!target->nameless)
        target->fd = openat(target->folder_fd, target->temporary,
                            O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (target->fd < 0)
        target->temporary[0] = '\0';
    return target->fd;
}

int target_open(struct target *target, struct error *error)
{
    if (target->folder_fd < 0)
        return 0;
    target->owned = true;
    if (open_temporary(target) < 0)
        return refuse(error, "cannot make a file beside", target);
    return dress(target) < 0 ? refuse(error, "cannot prepare", target) : 0;
}

/* Link the file of `fd` under its temporary name, then rename it to the target's name: a link
 * cannot replace a file, a rename can. The target may have changed since target_find. */
static int put_in_place(struct target *target, int fd)
{
    char link[40];
    struct stat now;
    int folder_fd = target->folder_fd;
    if (fstatat(folder_fd, target->file, &now, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(now.st_mode)) {
        errno = EEXIST;
        return -1;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (target->nameless &&
        linkat(AT_FDCWD, link, folder_fd, target->temporary, AT_SYMLINK_FOLLOW) < 0)
        return -1;
    if (renameat(folder_fd, target->temporary, folder_fd, target->file) < 0)
        return -1;
    target->temporary[0] = '\0';
    return 0;
}

static int sync_folder(const struct target *target)
{
    int fd = openat(target->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 ? -1 : fsync(fd);
    shut(&fd);
    return result;
}

int target_sync(struct target *target, struct error *error)
{
    if (target->sync && fsync(target->fd) < 0)
        return refuse(error, "cannot sync", target);
    return 0;
}

int target_publish(struct target *target, struct error *error)
{
    int kept = -1; /* keeps the file's /proc name after the close */
    if (target->temporary[0] && (kept = fcntl(target->fd, F_DUPFD_CLOEXEC, 0)) < 0)
        return refuse(error, "cannot publish", target);
    if (target->owned) { /* NFS and quotas may report a full disk only at the close */
        int fd = target->fd;
        target->fd = -1;
        if (close(fd) < 0)
            refuse(error, "cannot close", target);
    }
    if (!error->status && kept >= 0 && put_in_place(target, kept) < 0)
        refuse(error, "cannot put the new file in place of", target);
    if (!error->status && kept >= 0 && target->sync && sync_folder(target) < 0)
        refuse(error, "cannot sync the folder of", target);
    shut(&kept);
    return error->status ? -1 : 0;
}

void target_discard(struct target *target)
{
    if (target->temporary[0])
        unlinkat(target->folder_fd, target->temporary, 0);
}

void target_close(struct target *target)
{
    target_discard(target);
    target->temporary[0] = '\0';
    if (target->owned)
        shut(&target->fd);
    shut(&target->folder_fd);
}
