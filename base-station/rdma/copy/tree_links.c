/* Hard links (-H), created after all files are in place: see tree_sink.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "descriptors.h"
#include "tree_part.h"
#include "tree_sink.h"

static void add(struct tree_names *names, uint64_t number, char *path)
{
    names->row = allocated(reallocarray(names->row, names->count + 1, sizeof *names->row));
    names->row[names->count++] = (struct tree_one_name){number, path, false};
}

void tree_links_first(struct sink *sink, uint64_t number, const char *name)
{
    add(&sink->first_names, number, tree_folder_path(sink->in, name));
}

static int by_number(const void *one, const void *other)
{
    const struct tree_one_name *first = one, *second = other;
    return (first->number > second->number) - (first->number < second->number);
}

static struct tree_one_name *first_of(struct sink *sink, uint64_t number)
{
    const struct tree_one_name wanted = {.number = number};
    const struct tree_names *names = &sink->first_names;
    return names->count
               ? bsearch(&wanted, names->row, names->count, sizeof wanted, by_number)
               : NULL;
}

void tree_links_placed(struct sink *sink, uint64_t number)
{
    first_of(sink, number)->placed = true;
}

bool tree_links_other(struct sink *sink, uint64_t number, const char *name)
{
    if (!first_of(sink, number))
        return false;
    if (name)
        add(&sink->other_names, number, tree_folder_path(sink->in, name));
    return true;
}

/* Link into a finished folder: keep its times, and make it writable for the moment if need be. */
static int link_to(int from, const char *first, int to, const char *name)
{
    struct stat file, other, folder;
    if (fstatat(from, first, &file, AT_SYMLINK_NOFOLLOW) < 0 || fstat(to, &folder) < 0)
        return -1;
    if (fstatat(to, name, &other, AT_SYMLINK_NOFOLLOW) == 0 &&
        file.st_dev == other.st_dev && file.st_ino == other.st_ino)
        return 0;
    bool closed = !(folder.st_mode & S_IWUSR) && fchmod(to, folder.st_mode | S_IRWXU) == 0;
    int result = part_hard(from, first, to, name), error = errno;
    if (closed)
        fchmod(to, folder.st_mode);
    futimens(to, (struct timespec[]){folder.st_atim, folder.st_mtim});
    errno = error;
    return result;
}

void tree_links_make(struct sink *sink)
{
    for (size_t i = 0; i < sink->other_names.count; i++) {
        const struct tree_one_name *other = &sink->other_names.row[i];
        const struct tree_one_name *one = first_of(sink, other->number);
        const char *first = one->path, *name = other->path, *why = NULL;
        int from = open_above(sink->top->fd, &first), to = open_above(sink->top->fd, &name);
        if (!one->placed)
            why = "not linked: the file of that content did not arrive";
        else if (from < 0 || to < 0 || link_to(from, first, to, name) < 0)
            why = strerror(errno);
        if (why)
            tree_error(&sink->errors, other->path, why);
        shut(&from);
        shut(&to);
    }
}

void tree_names_close(struct tree_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->row[i].path);
    free(names->row);
}
