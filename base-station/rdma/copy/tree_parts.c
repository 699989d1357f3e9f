/* rdcp --serve-parts: lists on stdout what DST holds of earlier transfers, so that they
 * go on where they ended. */
#include "tree_sides.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tree_name.h"
#include "tree_base.h"
#include "tree_io.h"
#include "tree_part.h"
#include "trouble.h"

enum { SAY_AFTER_MS = 3000 };

struct list {
    struct tree_writer out;
    const char *target;
    int64_t began_ms; /* 0 = has said that it is at work */
};

/* The part of the file that `note` is about; at the source the file is `path`. */
static int list_part(struct list *list, int folder, const struct part_note *note,
                     const char *path)
{
    struct stat state;
    struct tree_record record = {
        .kind = TREE_PART,
        .size = note->size,
        .inode = note->inode,
        .attributes.mtime_ns = note->mtime_ns,
    };
    int result = 0, fd = part_look(folder, note->name);
    if (fd >= 0 && fstat(fd, &state) == 0 &&
        sum_of(fd, (uint64_t)state.st_size, &record.sum) == 0) {
        record.from = (uint64_t)state.st_size;
        record.path = strdup(path);
        if (record.path && strlen(path) <= TREE_PATH_MOST)
            result = tree_write(&list->out, &record);
        free(record.path);
    }
    if (fd >= 0)
        close(fd);
    return result;
}

static int list_folder(struct list *list, int fd, const char *path);

static int list_entry(struct list *list, int folder, const struct dirent *entry,
                      const char *path)
{
    struct part_note note;
    struct bytes below = {0};
    bool part = part_note_read(&note, folder, entry->d_name) == 0;
    int result = bytes_format(&below, *path ? "%s/%s" : "%s%s", path,
                              part ? note.name : entry->d_name);
    if (result == 0 && part) {
        result = list_part(list, folder, &note, below.data);
    } else if (result == 0 && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)) {
        int fd = open_below(folder, entry->d_name, O_RDONLY | O_DIRECTORY, 0);
        if (fd >= 0)
            result = list_folder(list, fd, below.data);
    }
    bytes_close(&below);
    return result;
}

/* Everything below; closes `fd`. */
static int list_folder(struct list *list, int fd, const char *path)
{
    DIR *folder = fdopendir(fd);
    struct dirent *entry;
    int result = 0;
    if (!folder) {
        close(fd);
        return 0;
    }
    if (list->began_ms && now_ms() - list->began_ms > SAY_AFTER_MS) {
        char target[256];
        shown(target, sizeof target, list->target, (uint32_t)strlen(list->target));
        say("looking through all of %s for what earlier copies have left", target);
        list->began_ms = 0;
    }
    while (result == 0 && (entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = list_entry(list, dirfd(folder), entry, path);
    closedir(folder);
    return result;
}

/* One source called `name`; `last` is its name at DST, "" = DST is its copy. */
static int list_name(struct list *list, int base, const char *name, const char *last)
{
    struct part_note note;
    int result = 0;
    if (*name && part_note_of(&note, base, *last ? last : name) == 0)
        result = list_part(list, base, &note, name);
    int fd = open_below(base, *last ? last : ".", O_RDONLY | O_DIRECTORY, 0);
    if (fd >= 0 && result == 0)
        return list_folder(list, fd, name);
    if (fd >= 0)
        close(fd);
    return result;
}

static int list_target(struct list *list, int base)
{
    struct tree_record record = {.kind = TREE_TARGET};
    struct stat state;
    char *id = boot_id();
    int result = 0;
    if (id && fstat(base, &state) == 0) {
        record.device = state.st_dev;
        record.inode = state.st_ino;
        strncpy(record.name, id, TREE_NAME_MOST);
        result = tree_write(&list->out, &record);
    }
    free(id);
    return result;
}

int tree_parts(const char *target, char **names, size_t count)
{
    static const struct tree_record start = {.kind = TREE_START,
                                             .length = TREE_VERSION};
    static const struct tree_record end = {.kind = TREE_END};
    struct list list = {{.fd = STDOUT_FILENO}, target, now_ms()};
    struct tree_base base;
    int result = tree_write(&list.out, &start);
    if (tree_base_open(&base, target, count == 1, true) == 0) {
        result = result < 0 ? result : list_target(&list, base.fd);
        for (size_t i = 0; i < count && result == 0; i++) {
            char *name = tree_name(names[i]);
            result = name ? list_name(&list, base.fd, name,
                                      base.rename ? base.rename : name)
                          : -1;
            free(name);
        }
    }
    tree_base_close(&base);
    if (result == 0)
        result = tree_write(&list.out, &end);
    if (result == 0)
        result = tree_flush(&list.out);
    bytes_close(&list.out.pending);
    return result < 0;
}
