/* Files with more names: see tree_links.h. */
#include "tree_links.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "tree_part.h"

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
