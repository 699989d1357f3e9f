/* Files by device and inode: see tree_made.h. */
#include "tree_made.h"

#include <stdlib.h>

#include "bytes.h"

/* Where the file is, or the free place where it belongs. */
static struct tree_made_file *place_of(const struct tree_made *made, uint64_t device,
                                       uint64_t inode)
{
    size_t at = (size_t)((inode ^ device << 32) * UINT64_C(0x9e3779b97f4a7c15) >> 20);
    struct tree_made_file *file;
    do
        file = &made->file[at++ & (made->room - 1)];
    while (file->inode && (file->inode != inode || file->device != device));
    return file;
}

const uint64_t *tree_made_find(const struct tree_made *made, const struct stat *state)
{
    if (!made->count)
        return NULL;
    const struct tree_made_file *file = place_of(made, state->st_dev, state->st_ino);
    return file->inode ? &file->number : NULL;
}

static void grow(struct tree_made *made)
{
    struct tree_made more = {.room = made->room ? made->room * 2 : 64};
    more.file = allocated(calloc(more.room, sizeof *more.file));
    for (size_t i = 0; i < made->room; i++)
        if (made->file[i].inode)
            *place_of(&more, made->file[i].device, made->file[i].inode) = made->file[i];
    free(made->file);
    made->file = more.file;
    made->room = more.room;
}

void tree_made_add(struct tree_made *made, const struct stat *state, uint64_t number)
{
    if (made->count >= made->room / 4 * 3)
        grow(made);
    struct tree_made_file *file = place_of(made, state->st_dev, state->st_ino);
    made->count += !file->inode;
    *file = (struct tree_made_file){state->st_dev, state->st_ino, number};
}

void tree_made_close(struct tree_made *made)
{
    free(made->file);
    *made = (struct tree_made){0};
}
