/* Parts of files and the notes beside them: see tree_part.h. */
#include "tree_part.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "descriptors.h"
#include "quote.h"
#include "tree_io.h"

#define PART_SUFFIX ".rdcp-part"
#define NOTE_SUFFIX ".rdcp-from"
enum { PART_NAME = 256, NOTE_BYTES = 512, TRIES = 16 };

static void part_name(char into[PART_NAME], const char *name, const char *suffix)
{
    if (snprintf(into, PART_NAME, ".%s%s", name, suffix) < PART_NAME)
        return;
    unsigned long long sum = XXH64(name, strlen(name), 0);
    snprintf(into, PART_NAME, ".%016llx%s", sum, suffix);
}

static bool ends_in(const char *name, const char *suffix)
{
    size_t length = strlen(name), least = strlen(suffix) + 1;
    return name[0] == '.' && length > least &&
           strcmp(name + length - strlen(suffix), suffix) == 0;
}

bool part_is(const char *name)
{
    return ends_in(name, PART_SUFFIX) || ends_in(name, NOTE_SUFFIX);
}

/* Is the note beside the part that of this very file? */
static bool has_note(int folder, const char *name, const struct tree_attributes *of,
                     uint64_t size)
{
    char text[NOTE_BYTES] = "", path[PART_NAME];
    unsigned long long noted_size, inode;
    long long mtime;
    part_name(path, name, NOTE_SUFFIX);
    int fd = open_below(folder, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    shut(&fd);
    char *noted = got > 0 ? strchr(text, '\n') : NULL;
    return noted && strcmp(noted + 1, name) == 0 &&
           sscanf(text, "%llu %llu %lld", &noted_size, &inode, &mtime) == 3 &&
           noted_size == size && inode == of->inode && mtime == of->mtime_ns;
}

static int write_note(int folder, const char *name, const struct tree_attributes *of,
                      uint64_t size)
{
    char path[PART_NAME];
    part_name(path, name, NOTE_SUFFIX);
    unlinkat(folder, path, 0);
    int fd = open_below(folder, path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return -1;
    int result = dprintf(fd, "%llu %llu %lld\n%s", (unsigned long long)size,
                         (unsigned long long)of->inode, (long long)of->mtime_ns, name);
    int error = errno;
    if (close(fd) < 0 && result >= 0) {
        result = -1;
        error = errno;
    }
    errno = error;
    return result < 0 ? -1 : 0;
}

/* Whoever else owns it, or has another name for it, would have a hand in the file. */
static bool is_ours(const struct stat *state)
{
    return S_ISREG(state->st_mode) && state->st_nlink == 1 &&
           state->st_uid == geteuid();
}

static bool is_at(int fd, int folder, const char *path)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && is_ours(&opened) &&
           fstatat(folder, path, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* Opens and locks what stands there. -1 with ENOENT: not any more. */
static int open_old(int folder, const char *path)
{
    struct stat state;
    if (fstatat(folder, path, &state, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    int fd = -1;
    errno = EACCES;
    if (is_ours(&state))
        fd = open_below(folder, path, O_RDWR | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0) {
        if (errno == EACCES && unlinkat(folder, path, 0) == 0)
            errno = ENOENT;
        return -1;
    }
    bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    /* Whoever had the lock may have published the file meanwhile. */
    if (locked && is_at(fd, folder, path))
        return fd;
    errno = locked ? ENOENT : errno == EWOULDBLOCK ? EBUSY : errno;
    shut(&fd);
    return -1;
}

static int open_locked(int folder, const char *path)
{
    for (int i = 0; i < TRIES; i++) {
        int fd = open_below(folder, path, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd < 0 && errno == EEXIST && (fd = open_old(folder, path)) < 0) {
            if (errno == ENOENT)
                continue;
            return -1;
        }
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
            return fd;
        errno = errno == EWOULDBLOCK ? EBUSY : errno;
        shut(&fd);
        return -1;
    }
    errno = EEXIST;
    return -1;
}

static char *reason(const char *path, int error)
{
    struct bytes text = {0};
    bytes_text(&text, "cannot write ");
    quote_shown(&text, path);
    bytes_format(&text, ": %s",
                 error == EBUSY ? "another rdcp is writing it" : strerror(error));
    return text.data;
}

int part_resume(int folder, const char *name, const struct tree_attributes *of,
                uint64_t size, uint64_t *from)
{
    char path[PART_NAME];
    struct stat state;
    part_name(path, name, PART_SUFFIX);
    if (fstatat(folder, path, &state, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    int fd = open_old(folder, path);
    if (fd >= 0 && has_note(folder, name, of, size) && fstat(fd, &state) == 0 &&
        (uint64_t)state.st_size <= size) {
        *from = (uint64_t)state.st_size;
        return fd;
    }
    shut(&fd);
    return -1;
}

int part_open(int folder, const char *name, const struct tree_attributes *of,
              uint64_t size, char **why)
{
    char path[PART_NAME];
    part_name(path, name, PART_SUFFIX);
    int fd = open_locked(folder, path);
    bool old = fd >= 0 && lseek(fd, 0, SEEK_END) > 0;
    if (old && size < PART_LEAST) {
        part_name(path, name, NOTE_SUFFIX); /* of a file that was longer */
        unlinkat(folder, path, 0);
        part_name(path, name, PART_SUFFIX);
    }
    if (fd >= 0 && (!old || ftruncate(fd, 0) == 0) &&
        (size < PART_LEAST || write_note(folder, name, of, size) == 0))
        return fd;
    *why = reason(path, errno);
    if (fd >= 0) {
        part_drop(folder, name);
        close(fd);
    }
    return -1;
}

int part_nameless(int folder, mode_t mode)
{
    return openat(folder, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
}

int part_write(int fd, const void *bytes, size_t length, uint64_t offset)
{
    for (size_t done = 0; done < length;) {
        ssize_t got = pwrite(fd, (const char *)bytes + done, length - done,
                             (off_t)(offset + done));
        if (got < 0 && errno != EINTR)
            return -1;
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

int part_name_it(int fd, int folder, const char *name)
{
    char path[32];
    if (linkat(fd, "", folder, name, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != ENOENT) /* else this user may not, or not before Linux 6.10 */
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW);
}

int part_publish(int folder, const char *name, uint64_t size)
{
    char path[PART_NAME];
    part_name(path, name, PART_SUFFIX);
    if (renameat(folder, path, folder, name) < 0)
        return -1;
    part_name(path, name, NOTE_SUFFIX);
    if (size >= PART_LEAST)
        unlinkat(folder, path, 0);
    return 0;
}

/* The entry of the folder is a part or a note. */
static void tidy(int folder, const char *entry, bool part)
{
    struct stat state;
    int fd = part ? open_old(folder, entry) : -1;
    char own[PART_NAME];
    if (!part) { /* a note without its part */
        size_t stem = strlen(entry) - strlen(NOTE_SUFFIX);
        snprintf(own, sizeof own, "%.*s%s", (int)stem, entry, PART_SUFFIX);
        if (fstatat(folder, own, &state, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
            unlinkat(folder, entry, 0);
    } else if (fd >= 0) {
        unlinkat(folder, entry, 0);
        close(fd);
    }
}

bool part_find(int folder, bool remove)
{
    bool found = false;
    for (int parts = 1; parts >= 0; parts--) {
        int fd = open_below(folder, ".", O_RDONLY | O_DIRECTORY, 0);
        DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
        struct dirent *entry;
        while (entries && (entry = readdir(entries))) {
            bool part = ends_in(entry->d_name, PART_SUFFIX);
            if (!part && !ends_in(entry->d_name, NOTE_SUFFIX))
                continue;
            found = true;
            if (remove && part == parts)
                tidy(folder, entry->d_name, part);
        }
        if (entries)
            closedir(entries);
        else if (fd >= 0)
            close(fd);
        if (!remove)
            break;
    }
    return found;
}

/* What stands as a part gets its name. */
static int rename_part(int folder, const char *path, const char *name)
{
    if (renameat(folder, path, folder, name) == 0)
        return 0;
    int error = errno;
    unlinkat(folder, path, 0);
    errno = error;
    return -1;
}

int part_link(int folder, const char *name, const char *target, char **why)
{
    char path[PART_NAME];
    part_drop(folder, name);
    part_name(path, name, PART_SUFFIX);
    if (symlinkat(target, folder, path) < 0) {
        *why = reason(path, errno);
        return -1;
    }
    if (rename_part(folder, path, name) == 0)
        return 0;
    *why = text_of("%m");
    return -1;
}

int part_hard(int from, const char *first, int folder, const char *name)
{
    char path[PART_NAME];
    part_drop(folder, name);
    part_name(path, name, PART_SUFFIX);
    return linkat(from, first, folder, path, 0) < 0 ? -1
                                                    : rename_part(folder, path, name);
}

void part_drop(int folder, const char *name)
{
    char path[PART_NAME];
    part_name(path, name, NOTE_SUFFIX);
    unlinkat(folder, path, 0);
    part_name(path, name, PART_SUFFIX);
    unlinkat(folder, path, 0);
}
