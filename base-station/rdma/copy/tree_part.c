/* Parts of files and the notes beside them: see tree_part.h. */
#include "tree_part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

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

int part_note_read(struct part_note *note, int folder, const char *entry)
{
    char text[NOTE_BYTES] = "", own[PART_NAME];
    unsigned long long size, inode;
    long long mtime;
    if (!ends_in(entry, NOTE_SUFFIX))
        return -1;
    int fd = open_below(folder, entry, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    char *name = got > 0 ? strchr(text, '\n') : NULL;
    if (!name || sscanf(text, "%llu %llu %lld", &size, &inode, &mtime) != 3)
        return -1;
    *note = (struct part_note){.size = size, .inode = inode, .mtime_ns = mtime};
    if ((size_t)snprintf(note->name, sizeof note->name, "%s", name + 1) >=
            sizeof note->name ||
        !tree_is_name(note->name, strlen(note->name)))
        return -1;
    part_name(own, note->name, NOTE_SUFFIX);
    return strcmp(own, entry) == 0 ? 0 : -1;
}

int part_note_of(struct part_note *note, int folder, const char *name)
{
    char path[PART_NAME];
    part_name(path, name, NOTE_SUFFIX);
    if (part_note_read(note, folder, path) < 0)
        return -1;
    return strcmp(note->name, name) == 0 ? 0 : -1;
}

static int write_note(int folder, const char *name, const struct tree_record *record)
{
    char path[PART_NAME];
    if (record->size < PART_LEAST)
        return 0;
    part_name(path, name, NOTE_SUFFIX);
    unlinkat(folder, path, 0);
    int fd = open_below(folder, path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return -1;
    int result = dprintf(fd, "%llu %llu %lld\n%s", (unsigned long long)record->size,
                         (unsigned long long)record->attributes.inode,
                         (long long)record->attributes.mtime_ns, name);
    return close(fd) < 0 || result < 0 ? -1 : 0;
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

int part_look(int folder, const char *name)
{
    char path[PART_NAME];
    part_name(path, name, PART_SUFFIX);
    int fd = open_below(folder, path, O_RDWR | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0 || is_at(fd, folder, path))
        return fd;
    close(fd);
    return -1;
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
    int error = locked ? ENOENT : errno == EWOULDBLOCK ? EBUSY : errno;
    close(fd);
    errno = error;
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
        int error = errno == EWOULDBLOCK ? EBUSY : errno;
        close(fd);
        errno = error;
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
                 error == EBUSY    ? "another rdcp is writing it"
                 : error == ESTALE ? "it is not what it was: start the copy again"
                                   : strerror(error));
    return text.data;
}

int part_open(int folder, const char *name, const struct tree_record *record,
              char **why)
{
    char path[PART_NAME];
    struct stat state;
    part_name(path, name, PART_SUFFIX);
    int fd = open_locked(folder, path);
    bool right = fd >= 0 && fstat(fd, &state) == 0;
    if (right && (uint64_t)state.st_size < record->from) {
        right = false;
        errno = ESTALE;
    }
    if (right && ftruncate(fd, (off_t)record->from) == 0 &&
        (record->from || write_note(folder, name, record) == 0))
        return fd;
    *why = reason(path, errno);
    if (fd >= 0 && !record->from)
        part_drop(folder, name); /* nothing to go on with */
    if (fd >= 0)
        close(fd);
    return -1;
}

int part_publish(int folder, const char *name)
{
    char path[PART_NAME];
    part_name(path, name, PART_SUFFIX);
    if (renameat(folder, path, folder, name) < 0)
        return -1;
    part_name(path, name, NOTE_SUFFIX);
    unlinkat(folder, path, 0);
    return 0;
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
    if (renameat(folder, path, folder, name) == 0)
        return 0;
    *why = strdup(strerror(errno));
    unlinkat(folder, path, 0);
    return -1;
}

void part_drop(int folder, const char *name)
{
    char path[PART_NAME];
    part_name(path, name, NOTE_SUFFIX);
    unlinkat(folder, path, 0);
    part_name(path, name, PART_SUFFIX);
    unlinkat(folder, path, 0);
}
