/* The folders that a sink fills: see tree_folder.h. */
#include "tree_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "leash_work.h"
#include "tree_part.h"

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

void tree_folder_complain(const struct tree_folder *folder, uint64_t *errors,
                          const char *target, const char *name, const char *what)
{
    char *path = tree_folder_path(folder, name);
    tree_error(errors, *path ? path : target, what);
    free(path);
}

static bool is_unfinished(const struct stat *state)
{
    /* A folder may have got the set-group-id bit from the one above. */
    return S_ISDIR(state->st_mode) && state->st_uid == geteuid() &&
           (state->st_mode & 05777) == TREE_UNFINISHED;
}

/* Which attributes of its source a folder gets when all is in it. One that was there has
 * got a new time by what was put into it; its mode is its own, but for DST itself. */
static enum tree_keep what_to_keep(const struct rdcp_options *options, int fd, bool made,
                                   bool named)
{
    struct stat state;
    if (made || options->archive)
        return KEEP_ALL;
    if (fstat(fd, &state) < 0 || state.st_uid != geteuid())
        return KEEP_NOTHING;
    if (is_unfinished(&state))
        return KEEP_ALL;
    return named ? KEEP_TIMES : KEEP_NOTHING;
}

static int open_it(struct tree_folder *folder, int above, bool *made, bool dry)
{
    const char *name = folder->name;
    if (!*name)
        return fcntl(above, F_DUPFD_CLOEXEC, 0);
    *made = !dry && mkdirat(above, name, TREE_UNFINISHED) == 0;
    if (!*made && !dry && errno != EEXIST)
        return -1;
    return open_below(above, name, O_RDONLY | O_DIRECTORY, 0);
}

struct tree_folder *tree_folder_enter(struct tree_folder *up, const char *name,
                                      const struct tree_attributes *of,
                                      const struct rdcp_options *options,
                                      const char **why)
{
    struct tree_folder *folder = allocated(malloc(sizeof *folder));
    bool made = false;
    *why = NULL;
    *folder = (struct tree_folder){.up = up, .fd = -1, .uses = 1, .attributes = *of};
    memcpy(folder->name, name, strlen(name) + 1);
    up->uses++;
    folder->absent = up->absent;
    if (up->fd < 0)
        return folder;
    folder->fd = open_it(folder, up->fd, &made, options->dry_run);
    if (folder->fd < 0 && options->dry_run && errno == ENOENT)
        folder->absent = true;
    else if (folder->fd < 0)
        *why = strerror(errno);
    else
        folder->keep = what_to_keep(options, folder->fd, made, *name);
    folder->made = made;
    folder->had_parts = folder->fd >= 0 && !made && part_find(folder->fd, false);
    return folder;
}

const char *tree_keep_attributes(int fd, const struct tree_attributes *to,
                                 const struct tree_xattr *xattrs,
                                 const struct rdcp_options *options, int *error)
{
    struct timespec times[2] = {timespec_of(to->atime_ns), timespec_of(to->mtime_ns)};
    const char *lost = NULL;
    bool owned = options->archive;
    if (tree_xattr_apply(xattrs, options, fd, false) < 0) {
        lost = "extended attributes";
        *error = errno;
    }
    if (options->archive && fchown(fd, to->uid, to->gid) < 0) {
        owned = false;
        *error = errno;
        lost = errno == EPERM && fchown(fd, (uid_t)-1, to->gid) == 0 ? "owner"
                                                                     : "owner and group";
    }
    /* Who cannot give the owner away must not give the set-uid bit either. */
    mode_t mode = to->mode & (owned ? 07777 : 0777);
    struct stat state;
    if ((fstat(fd, &state) < 0 || (state.st_mode & 07777) != mode) &&
        fchmod(fd, mode) < 0) {
        lost = "mode";
        *error = errno;
    }
    if (tree_xattr_apply(xattrs, options, fd, true) < 0) {
        lost = "access control list";
        *error = errno;
    }
    if (futimens(fd, times) < 0) {
        lost = "time";
        *error = errno;
    }
    return lost;
}

bool tree_excluded(const struct rdcp_options *options, const char *path, bool folder)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < options->exclude.count; i++) {
        char *pattern = allocated(strdup(options->exclude.word[i]));
        size_t length = strlen(pattern);
        bool only_folders = length && pattern[length - 1] == '/';
        if (only_folders)
            pattern[length - 1] = '\0';
        bool whole = strchr(pattern, '/');
        const char *from = *pattern == '/' ? pattern + 1 : pattern;
        bool matches = (folder || !only_folders) &&
                       fnmatch(from, whole ? path : name, FNM_PATHNAME) == 0;
        free(pattern);
        if (matches)
            return true;
    }
    return false;
}

void tree_folder_extra(struct tree_folder *folder, const struct rdcp_options *options,
                       struct words *found)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < folder->seen.length; i++)
        count += !folder->seen.data[i];
    const char **seen = allocated(calloc(count + 1, sizeof *seen));
    for (size_t i = 0; i < count; i++, at += strlen(seen[i - 1]) + 1)
        seen[i] = folder->seen.data + at;
    int fd = open_below(folder->fd, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    qsort(seen, count, sizeof *seen, words_by_text);
    while (entries && (entry = readdir(entries))) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || part_is(name) ||
            bsearch(&name, seen, count, sizeof *seen, words_by_text))
            continue;
        char *path = tree_folder_path(folder, name);
        if (!tree_excluded(options, path, entry->d_type == DT_DIR))
            words_add(found, path);
        free(path);
    }
    if (entries)
        closedir(entries);
    free(seen);
}

/* Closes `fd`. */
static int remove_below(int fd)
{
    DIR *entries = fdopendir(fd);
    struct dirent *entry;
    int result = entries ? 0 : -1;
    while (entries && result == 0 && (entry = readdir(entries)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = tree_remove(fd, entry->d_name);
    int error = errno;
    if (entries)
        closedir(entries);
    else
        close(fd);
    errno = error;
    return result;
}

int tree_remove(int base, const char *path)
{
    int above = open_above(base, &path), result = above < 0 ? -1 : unlinkat(above, path, 0);
    if (above >= 0 && result < 0 && (errno == EISDIR || errno == EPERM)) {
        int fd = open_below(above, path, O_RDONLY | O_DIRECTORY, 0);
        if (fd >= 0 && remove_below(fd) == 0)
            result = unlinkat(above, path, AT_REMOVEDIR);
    }
    shut(&above);
    return result;
}

void tree_folder_free(struct tree_folder *folder)
{
    tree_xattr_close(&folder->xattrs);
    bytes_close(&folder->seen);
    shut(&folder->fd);
    free(folder);
}

/* The last component of `path` is the name of what is to come; cuts it off. */
static int open_beside(struct tree_base *base, char *path, bool folder)
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
            is_unfinished(&state))
            base->rename = allocated(strdup(""));
    } else if (errno == ENOENT || errno == ENOTDIR) {
        if (single)
            result = open_beside(base, path, folder);
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

static struct tree_first *find(struct tree_links *links, uint64_t number)
{
    size_t low = 0, high = links->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (links->row[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < links->count && links->row[low].number == number ? &links->row[low] : NULL;
}

void tree_links_add(struct tree_links *links, uint64_t number,
                    const struct tree_folder *folder, const char *name)
{
    if (links->count == links->room) {
        links->room = links->room ? links->room * 2 : 16;
        links->row = allocated(reallocarray(links->row, links->room, sizeof *links->row));
    }
    links->row[links->count++] = (struct tree_first){
        .number = number, .path = tree_folder_path(folder, name)};
}

static int link_to(const struct tree_first *first, int base, const char *path)
{
    const char *name = path, *from_name = first->path;
    struct stat state;
    int from = open_above(base, &from_name), to = open_above(base, &name), result = -1;
    if (from >= 0 && to >= 0) {
        bool there = fstatat(to, name, &state, AT_SYMLINK_NOFOLLOW) == 0 &&
                     state.st_dev == first->file.st_dev &&
                     state.st_ino == first->file.st_ino;
        struct timespec times[2];
        if (!there && fstat(to, &state) == 0) {
            times[0] = state.st_atim;
            times[1] = state.st_mtim;
            result = part_hard(from, from_name, to, name);
            futimens(to, times); /* all else may be in the folder already */
        } else if (there) {
            result = 0;
        }
    }
    shut(&from);
    shut(&to);
    return result;
}

static void make(const struct tree_first *first, int base, const char *path,
                 uint64_t *errors)
{
    if (first->state == LINK_FAILED)
        tree_error(errors, path, "not linked: the file of that content did not arrive");
    else if (link_to(first, base, path) < 0)
        tree_error(errors, path, strerror(errno));
}

int tree_links_take(struct tree_links *links, uint64_t number, int base,
                    const struct tree_folder *folder, const char *name, uint64_t *errors)
{
    struct tree_first *first = find(links, number);
    if (!first)
        return -1;
    char *path = tree_folder_path(folder, name);
    if (first->state == LINK_WAITS)
        words_add(&first->waiting, path);
    else
        make(first, base, path, errors);
    free(path);
    return 0;
}

void tree_links_settle(struct tree_links *links, uint64_t number, int base,
                       const struct stat *file, uint64_t *errors)
{
    struct tree_first *first = find(links, number);
    if (!first)
        return;
    first->state = file ? LINK_PLACED : LINK_FAILED;
    if (file)
        first->file = *file;
    for (size_t i = 0; i < first->waiting.count; i++)
        make(first, base, first->waiting.word[i], errors);
    words_close(&first->waiting);
}

void tree_links_close(struct tree_links *links)
{
    for (size_t i = 0; i < links->count; i++) {
        free(links->row[i].path);
        words_close(&links->row[i].waiting);
    }
    free(links->row);
    *links = (struct tree_links){0};
}
