/* Folders of a sink, their existing entries and their disk: see tree_sink.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent_protocol.h"
#include "descriptors.h"
#include "tree_part.h"
#include "tree_sink.h"

/* Mode of a folder that is being filled. It denies access to other users. The sticky bit, otherwise
 * unused here, tells the next run that the attributes are still to be set. */
enum { UNFINISHED = 01700 };

char *tree_folder_path(const struct tree_folder *folder, const char *name)
{
    char *path = allocated(strdup(name));
    for (; folder; folder = folder->up) {
        if (!folder->name[0])
            continue;
        char *longer = text_of("%s%s%s", folder->name, *path ? "/" : "", path);
        free(path);
        path = longer;
    }
    return path;
}

void tree_sink_complain(struct sink *sink, const struct tree_folder *folder,
                        const char *name, const char *what)
{
    char *path = tree_folder_path(folder, name);
    tree_error(&sink->errors, *path ? path : sink->target, what);
    free(path);
}

/* Return the attributes that the file system of the folder stores for `to`. */
static struct tree_attributes stored(struct sink *sink, const struct tree_folder *folder,
                                     const struct tree_attributes *to)
{
    struct tree_scratch *scratch = &sink->scratch;
    struct tree_attributes as = *to;
    struct stat state;
    as.mode &= 0777;
    if (folder->fd < 0 || fstat(folder->fd, &state) < 0)
        return as;
    if (!scratch->made || scratch->device != state.st_dev) {
        if (scratch->made)
            shut(&scratch->fd);
        *scratch = (struct tree_scratch){.fd = part_scratch(folder->fd), .made = true,
                                         .device = state.st_dev};
    }
    if (scratch->fd < 0)
        return as;
    tree_keep(scratch->fd, to);
    return fstat(scratch->fd, &state) < 0 ? as : tree_attributes_of(&state);
}

bool tree_same_time(struct sink *sink, const struct tree_folder *folder,
                    const struct tree_attributes *is, const struct tree_attributes *to)
{
    return is->mtime_ns == to->mtime_ns || is->mtime_ns == stored(sink, folder, to).mtime_ns;
}

bool tree_same_mode(struct sink *sink, const struct tree_folder *folder,
                    const struct tree_attributes *is, const struct tree_attributes *to)
{
    return is->mode == (to->mode & 0777) || is->mode == stored(sink, folder, to).mode;
}

void tree_sink_not_kept(struct sink *sink, const struct tree_folder *folder, const char *name,
                        struct tree_lost lost, const struct tree_attributes *to)
{
    if (!lost.what || (strcmp(lost.what, "mode") == 0 &&
                       stored(sink, folder, to).mode != (to->mode & 0777)))
        return;
    char *text = text_of("arrived, but its %s could not be kept: %s", lost.what,
                         strerror(lost.error));
    tree_sink_complain(sink, folder, name, text);
    free(text);
}

const char *tree_sink_name(const struct sink *sink, const struct tree_record *record)
{
    return sink->in == sink->top && sink->rename ? sink->rename : record->name;
}

static bool is_unfinished(const struct stat *state)
{
    /* A new folder may inherit the set-group-id bit from its parent. */
    return S_ISDIR(state->st_mode) && state->st_uid == geteuid() &&
           (state->st_mode & 05777) == UNFINISHED;
}

static struct tree_folder *folder_open(struct tree_folder *up, const char *name)
{
    struct tree_folder *folder = allocated(malloc(sizeof *folder));
    *folder = (struct tree_folder){.up = up, .fd = -1, .uses = 1};
    memcpy(folder->name, name, strlen(name) + 1);
    if (up)
        up->uses++;
    return folder;
}

/* Cut the last component off `path`: it is the new name of the source. Open its parent. */
static int open_beside(struct sink *sink, char *path)
{
    size_t length = strlen(path);
    sink->slash = path[length - 1] == '/';
    while (length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
    char *name = strrchr(path, '/');
    sink->rename = allocated(strdup(name + 1));
    name[name == path] = '\0';
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void tree_folder_top(struct sink *sink)
{
    char *path = agent_work_file(sink->target);
    bool single = !sink->many;
    struct stat state;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && single && fstat(fd, &state) == 0 && is_unfinished(&state))
        sink->rename = allocated(strdup(""));
    else if (fd < 0 && single && (errno == ENOENT || errno == ENOTDIR))
        fd = open_beside(sink, path);
    sink->no_top = fd < 0 ? errno : 0;
    sink->top = sink->in = folder_open(NULL, "");
    sink->top->fd = fd;
    free(path);
}

/* Open the folder, creating it if necessary. Return -1 with errno on failure. */
static int open_it(struct tree_folder *folder)
{
    int above = folder->up->fd;
    if (!folder->name[0])
        return fcntl(above, F_DUPFD_CLOEXEC, 0);
    folder->made = mkdirat(above, folder->name, UNFINISHED) == 0;
    if (!folder->made && errno != EEXIST)
        return -1;
    return open_below(above, folder->name, O_RDONLY | O_DIRECTORY, 0);
}

/* True if `state` is the source's file with this device and inode. */
static bool is_one(const struct sink *sink, uint64_t device, uint64_t inode,
                      const struct stat *state)
{
    return sink->source_here && inode == state->st_ino &&
           device == (uint32_t)state->st_dev;
}

void tree_folder_enter(struct sink *sink, const struct tree_record *record)
{
    const char *name = tree_sink_name(sink, record), *why = NULL;
    const struct tree_attributes *of = &record->attributes;
    struct tree_folder *up = sink->in, *folder = folder_open(up, name);
    struct stat state;
    folder->attributes = *of;
    sink->in = folder;
    if (up->fd < 0)
        return;
    folder->fd = open_it(folder);
    if (folder->fd < 0 || fstat(folder->fd, &state) < 0)
        why = strerror(errno);
    else if (is_one(sink, of->device, of->inode, &state))
        why = "source and target are the same directory";
    if (!why)
        return;
    shut(&folder->fd); /* its entries are skipped */
    tree_sink_complain(sink, up, name, why);
}

static int entry_is_part(const struct dirent *entry)
{
    return part_is(entry->d_name);
}

/* True if the folder has part files or notes. With `tidy`, remove those of cut copies. */
static bool has_parts(const struct tree_folder *folder, bool tidy)
{
    struct dirent **entries = NULL;
    int count = scandirat(folder->fd, ".", &entries, entry_is_part, alphasort);
    for (int i = count - 1; i >= 0; i--) { /* a part file before its note */
        if (tidy)
            part_tidy(folder->fd, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return count > 0;
}

/* Finish a folder whose entries are all settled. An existing folder has a new time if entries were
 * added; it keeps its own mode, and DST itself also keeps its time. A folder that still has the
 * source's time was not modified since that time was set, and holds no part file. */
static void finish(struct sink *sink, struct tree_folder *folder)
{
    const struct tree_attributes *to = &folder->attributes;
    struct timespec times[2] = {timespec_of(to->atime_ns), timespec_of(to->mtime_ns)};
    struct tree_lost lost = {0};
    struct stat state;
    if (folder->fd < 0 || fstat(folder->fd, &state) < 0)
        return;
    bool untouched = tree_attributes_of(&state).mtime_ns == to->mtime_ns;
    if (!folder->made && !untouched)
        has_parts(folder, true);
    if (folder->made || is_unfinished(&state))
        lost = tree_keep(folder->fd, to);
    else if (!untouched && state.st_uid == geteuid() && folder->name[0] &&
             futimens(folder->fd, times) < 0)
        lost = (struct tree_lost){"time", errno};
    if (!untouched && has_parts(folder, false)) /* another copy is writing into it */
        futimens(folder->fd, NULL); /* so that the next copy looks for leftovers */
    tree_sink_not_kept(sink, folder->up, folder->name, lost, to);
}

void tree_folder_leave(struct sink *sink, struct tree_folder *folder)
{
    while (folder && --folder->uses == 0) {
        struct tree_folder *up = folder->up;
        if (!sink->cut && up) /* otherwise the folder keeps the mode UNFINISHED */
            finish(sink, folder);
        shut(&folder->fd);
        free(folder);
        folder = up;
    }
}

/* True if the existing entry `state` is the source of the entry to be placed. As with cp, a link to
 * a file counts as that file, unless a link replaces it: then the target of the existing link is
 * safe. */
static bool is_source(const struct sink *sink, const struct tree_folder *folder,
                      const char *name, const struct tree_attributes *own,
                      const struct tree_record *link, const struct stat *state)
{
    struct stat file;
    if (is_one(sink, own->device, own->inode, state))
        return true;
    if (link)
        return is_one(sink, link->device, link->inode, state);
    return S_ISLNK(state->st_mode) && fstatat(folder->fd, name, &file, 0) == 0 &&
           is_one(sink, own->device, own->inode, &file);
}

const char *tree_conflict(const struct sink *sink, const struct tree_folder *folder,
                            const char *name, const struct tree_attributes *own,
                            const struct tree_record *link, const struct stat *state)
{
    if (is_source(sink, folder, name, own, link, state))
        return "source and target are the same file";
    if (tree_made_find(&sink->made, state))
        return "another source had that name: it is not replaced";
    if (S_ISREG(state->st_mode) || S_ISLNK(state->st_mode))
        return NULL;
    return S_ISDIR(state->st_mode) ? "a directory has that name"
                                   : "a device, a FIFO or a socket has that name";
}

/* True for file systems known to store files uncompressed. */
static bool is_uncompressed(long type)
{
    return type == EXT4_SUPER_MAGIC || type == XFS_SUPER_MAGIC || type == TMPFS_MAGIC ||
           type == MSDOS_SUPER_MAGIC || type == EXFAT_SUPER_MAGIC;
}

char *tree_no_room(const struct tree_file *file)
{
    struct statfs disk;
    uint64_t needs = file->room < file->size ? file->room : file->size;
    if (needs < PART_LEAST || fstatfs(file->folder->fd, &disk) < 0 ||
        !is_uncompressed((long)disk.f_type))
        return NULL;
    uint64_t has = (uint64_t)disk.f_bavail * (uint64_t)disk.f_frsize;
    needs = needs > file->from ? needs - file->from : 0;
    return needs <= has ? NULL
                        : text_of("needs %llu bytes more on the disk, which has %llu: "
                                  "make room and start the copy again",
                                  (unsigned long long)needs, (unsigned long long)has);
}
