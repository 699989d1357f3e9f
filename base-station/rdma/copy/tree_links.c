/* Files with more names (-H): see tree_sink.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "descriptors.h"
#include "tree_part.h"
#include "tree_sink.h"

struct tree_links {
    uint64_t number;
    char *path; /* of the first name, from the top */
    enum { WAITS, PLACED, FAILED } state;
    struct words waiting; /* paths of the others */
};

void tree_links_add(struct sink *sink, uint64_t number, const char *name)
{
    struct tree_links *row = allocated(
        reallocarray(sink->links, sink->links_count + 1, sizeof *sink->links));
    sink->links = row;
    row[sink->links_count++] =
        (struct tree_links){.number = number, .path = tree_folder_path(sink->in, name)};
}

static int by_number(const void *one, const void *other)
{
    const struct tree_links *first = one, *second = other;
    return (first->number > second->number) - (first->number < second->number);
}

static struct tree_links *find(struct sink *sink, uint64_t number)
{
    const struct tree_links wanted = {.number = number};
    return sink->links_count ? bsearch(&wanted, sink->links, sink->links_count,
                                       sizeof wanted, by_number)
                             : NULL;
}

static bool is_at(int folder, const char *name, const struct stat *file)
{
    struct stat state;
    return fstatat(folder, name, &state, AT_SYMLINK_NOFOLLOW) == 0 &&
           state.st_dev == file->st_dev && state.st_ino == file->st_ino;
}

/* All else may be in the folder already: its times stay. */
static int link_to(int from, const char *first, int to, const char *name)
{
    struct stat file, folder;
    if (fstatat(from, first, &file, AT_SYMLINK_NOFOLLOW) < 0 || fstat(to, &folder) < 0)
        return -1;
    if (is_at(to, name, &file))
        return 0;
    int result = part_hard(from, first, to, name), error = errno;
    futimens(to, (struct timespec[]){folder.st_atim, folder.st_mtim});
    errno = error;
    return result;
}

static void make(struct sink *sink, const struct tree_links *links, const char *path)
{
    const char *name = path, *first = links->path, *why = NULL;
    int from = open_above(sink->top->fd, &first), to = open_above(sink->top->fd, &name);
    if (links->state == FAILED)
        why = "not linked: the file of that content did not arrive";
    else if (from < 0 || to < 0 || link_to(from, first, to, name) < 0)
        why = strerror(errno);
    if (why)
        tree_error(&sink->errors, path, why);
    shut(&from);
    shut(&to);
}

void tree_links_settle(struct sink *sink, uint64_t number, bool placed)
{
    struct tree_links *links = find(sink, number);
    links->state = placed ? PLACED : FAILED;
    for (size_t i = 0; i < links->waiting.count; i++)
        make(sink, links, links->waiting.word[i]);
    words_close(&links->waiting);
}

const char *tree_links_take(struct sink *sink, const struct tree_record *record)
{
    static const struct tree_attributes nobody;
    const char *name = tree_sink_name(sink, record);
    struct tree_links *links = find(sink, record->number);
    struct stat state;
    if (!links)
        return "a hard link to a file that it did not announce";
    if (sink->in->fd < 0)
        return NULL;
    if (sink->options->many)
        tree_file_written(sink);
    const char *why = tree_in_the_way(sink, sink->in, name, &nobody, NULL, &state);
    char *path = tree_folder_path(sink->in, name);
    if (why && !tree_made_find(&sink->made, &state))
        tree_sink_complain(sink, sink->in, name, why);
    else if (links->state == WAITS && !sink->options->dry_run)
        words_add(&links->waiting, path);
    else if (!sink->options->dry_run)
        make(sink, links, path);
    free(path);
    return NULL;
}

void tree_links_close(struct sink *sink)
{
    for (size_t i = 0; i < sink->links_count; i++) {
        free(sink->links[i].path);
        words_close(&sink->links[i].waiting);
    }
    free(sink->links);
}
