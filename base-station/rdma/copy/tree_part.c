/* Part files and their notes: see tree_part.h. */
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

#include "descriptors.h"
#include "tree.h"

#define PART_SUFFIX ".rdcp-part"
#define NOTE_SUFFIX ".rdcp-from"
enum { PART_NAME = 256, NOTE_MOST = 512, TRIES = 16 };

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

static char *note_of(const char *name, const struct tree_attributes *of, uint64_t size)
{
    return text_of("%llu %llu %lld\n%s", (unsigned long long)size,
                   (unsigned long long)of->inode, (long long)of->mtime_ns, name);
}

/* True if the note beside the part file identifies this very file. */
static bool has_note(int folder, const char *name, const struct tree_attributes *of, uint64_t size)
{
    char has[NOTE_MOST] = "", path[PART_NAME], *note = note_of(name, of, size);
    part_name(path, name, NOTE_SUFFIX);
    int fd = open_below(folder, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    bool same = fd >= 0 && read(fd, has, sizeof has - 1) > 0 && strcmp(has, note) == 0;
    shut(&fd);
    free(note);
    return same;
}

static int write_note(int folder, const char *name, const struct tree_attributes *of, uint64_t size)
{
    char path[PART_NAME], *note = note_of(name, of, size);
    part_name(path, name, NOTE_SUFFIX);
    unlinkat(folder, path, 0);
    int fd = open_below(folder, path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    int result = fd < 0 ? -1 : part_write(fd, note, strlen(note), 0);
    shut(&fd);
    free(note);
    return result;
}

/* Reject files with another owner or a second name: another user could modify the content. */
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

/* Open and lock the existing part file, or create one if `create` is O_CREAT. Remove a file that is
 * not ours, or one left read-only because its rdcp died just before the rename. Return -1 with
 * errno on failure. */
static int open_locked(int folder, const char *path, int create)
{
    struct stat state;
    for (int i = 0; i < TRIES; i++) {
        bool there = fstatat(folder, path, &state, AT_SYMLINK_NOFOLLOW) == 0;
        bool odd = there && !is_ours(&state);
        int fd = odd ? -1 : open_below(folder, path, O_RDWR | create, 0600);
        if (fd < 0 && (odd || errno == EACCES) && there) {
            if (unlinkat(folder, path, 0) < 0)
                return -1;
            continue;
        }
        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            errno = errno == EWOULDBLOCK ? EBUSY : errno;
            shut(&fd);
            return -1;
        }
        if (is_at(fd, folder, path))
            return fd;
        shut(&fd); /* the previous lock holder has renamed it */
    }
    errno = EEXIST;
    return -1;
}

static char *reason(const char *path, int error)
{
    struct bytes text = {0};
    bytes_text(&text, "cannot write ");
    quote_shown(&text, path);
    bytes_format(&text, ": %s", error == EBUSY ? "another rdcp is writing it" : strerror(error));
    return text.data;
}

int part_resume(int folder, const char *name, const struct tree_attributes *of,
                uint64_t size, uint64_t *from)
{
    char path[PART_NAME];
    struct stat state;
    part_name(path, name, PART_SUFFIX);
    int fd = open_locked(folder, path, 0);
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
    int fd = open_locked(folder, path, O_CREAT);
    if (fd >= 0 && (lseek(fd, 0, SEEK_END) == 0 || ftruncate(fd, 0) == 0) &&
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

int part_scratch(int folder)
{
    char digits[9], path[PART_NAME];
    int fd = part_nameless(folder, 0600);
    if (fd >= 0 || hex_random(digits, sizeof digits - 1) < 0)
        return fd;
    part_name(path, digits, PART_SUFFIX);
    fd = open_below(folder, path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd >= 0)
        unlinkat(folder, path, 0);
    return fd;
}

int part_write(int fd, const void *bytes, size_t length, uint64_t offset)
{
    for (size_t done = 0; done < length;) {
        ssize_t got = pwrite(fd, (const char *)bytes + done, length - done, (off_t)(offset + done));
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
    if (errno != ENOENT) /* otherwise not permitted for this user, or before Linux 6.10 */
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW);
}

int part_publish(int folder, const char *name)
{
    char part[PART_NAME], note[PART_NAME];
    part_name(part, name, PART_SUFFIX);
    part_name(note, name, NOTE_SUFFIX);
    int result = renameat(folder, part, folder, name), error = errno;
    if (result < 0)
        unlinkat(folder, part, 0);
    unlinkat(folder, note, 0);
    errno = error;
    return result;
}

void part_tidy(int folder, const char *entry)
{
    struct stat state;
    if (ends_in(entry, NOTE_SUFFIX)) { /* a note without its part file */
        char part[PART_NAME];
        size_t stem = strlen(entry) - strlen(NOTE_SUFFIX);
        snprintf(part, sizeof part, "%.*s%s", (int)stem, entry, PART_SUFFIX);
        if (fstatat(folder, part, &state, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
            unlinkat(folder, entry, 0);
        return;
    }
    int fd = open_locked(folder, entry, 0);
    if (fd >= 0)
        unlinkat(folder, entry, 0);
    shut(&fd);
}

int part_link(int folder, const char *name, const char *target, char **why)
{
    char path[PART_NAME];
    part_drop(folder, name);
    part_name(path, name, PART_SUFFIX);
    if (symlinkat(target, folder, path) < 0)
        *why = reason(path, errno);
    else if (part_publish(folder, name) < 0)
        *why = text_of("%m");
    else
        return 0;
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
