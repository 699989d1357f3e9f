/* rdcp --serve-parts: lists on stdout what DST holds of earlier transfers, so that they
 * go on where they ended. */
#include "rdcp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leashwork.h"
#include "treeio.h"

/* The part of `name` in `folder`, if it is there and says of what it is. */
static int list_part(struct tree_writer *out, int folder, const char *name,
                     const char *path)
{
    char part[256], from[256], text[128] = "";
    unsigned long long size, inode;
    long long mtime;
    struct stat state;
    if (part_name(part, name, PART_SUFFIX) < 0 || part_name(from, name, PART_SOURCE) < 0)
        return 0;
    int note = open_below(folder, from, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    ssize_t got = note >= 0 ? read(note, text, sizeof text - 1) : -1;
    if (note >= 0)
        close(note);
    if (got <= 0 || sscanf(text, "%llu %llu %lld", &size, &inode, &mtime) != 3)
        return 0;
    int fd = open_below(folder, part, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    struct tree_record record = {.kind = TREE_PART, .size = size, .inode = inode};
    int result = 0;
    if (fd >= 0 && fstat(fd, &state) == 0 && S_ISREG(state.st_mode) &&
        sum_of(fd, (uint64_t)state.st_size, &record.sum) == 0) {
        record.attributes.mtime_ns = mtime;
        record.from = (uint64_t)state.st_size;
        record.path = strdup(path);
        if (record.path && strlen(path) <= TREE_PATH_MOST)
            result = tree_write(out, &record);
        free(record.path);
    }
    if (fd >= 0)
        close(fd);
    return result;
}

/* The NAME of ".NAME.rdcp-from"; to free, NULL if it is another. */
static char *name_of_part(const char *entry)
{
    size_t length = strlen(entry), suffix = strlen(PART_SOURCE);
    if (entry[0] != '.' || length < suffix + 2 ||
        strcmp(entry + length - suffix, PART_SOURCE) != 0)
        return NULL;
    return strndup(entry + 1, length - suffix - 1);
}

static int list_folder(struct tree_writer *out, int fd, const char *path);

static int list_entry(struct tree_writer *out, int folder, const struct dirent *entry,
                      const char *path)
{
    char *name = name_of_part(entry->d_name);
    struct bytes below = {0};
    int result = bytes_format(&below, *path ? "%s/%s" : "%s%s", path,
                              name ? name : entry->d_name);
    if (result == 0 && name) {
        result = list_part(out, folder, name, below.data);
    } else if (result == 0 && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)) {
        int fd = open_below(folder, entry->d_name, O_RDONLY | O_DIRECTORY, 0);
        if (fd >= 0)
            result = list_folder(out, fd, below.data);
    }
    bytes_close(&below);
    free(name);
    return result;
}

/* Everything below; closes `fd`. */
static int list_folder(struct tree_writer *out, int fd, const char *path)
{
    DIR *folder = fdopendir(fd);
    struct dirent *entry;
    int result = 0;
    if (!folder) {
        close(fd);
        return 0;
    }
    while (result == 0 && (entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = list_entry(out, dirfd(folder), entry, path);
    closedir(folder);
    return result;
}

/* One source called `name`: DST/name if DST is a directory, else DST itself. */
static int list_name(struct tree_writer *out, const char *target, const char *name)
{
    char *path = leashwork_file(target);
    int base = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const char *last = name;
    int result = 0;
    char *slash = path ? strrchr(path, '/') : NULL;
    if (base < 0 && slash && slash[1]) {
        last = slash + 1;
        *slash = '\0';
        base = open(slash == path ? "/" : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (base >= 0 && *last) {
        result = list_part(out, base, last, name);
        int fd = open_below(base, last, O_RDONLY | O_DIRECTORY, 0);
        if (fd >= 0 && result == 0)
            result = list_folder(out, fd, name);
        close(base);
    } else if (base >= 0) {
        result = list_folder(out, base, name);
    }
    free(path);
    return result;
}

int tree_parts(const char *target, char **names, size_t count)
{
    struct tree_writer out = {.fd = STDOUT_FILENO};
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        char *name = rdcp_name(names[i]);
        result = name ? list_name(&out, target, name) : -1;
        free(name);
    }
    if (result == 0)
        result = tree_write(&out, &(struct tree_record){.kind = TREE_END});
    if (result == 0)
        result = tree_flush(&out);
    bytes_close(&out.pending);
    return result < 0;
}
