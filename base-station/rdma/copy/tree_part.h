/* What has arrived of a file NAME stands in .NAME.rdcp-part, until it is whole;
 * .NAME.rdcp-from says beside it of which file it is:
 *
 *   SIZE INODE MTIME_NS
 *   NAME
 *
 * Where such a name is too long a checksum stands in it for NAME. */
#ifndef TREE_PART_H
#define TREE_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "tree.h"

enum { PART_LEAST = 1 << 20 }; /* shorter files begin anew */

struct part_note {
    uint64_t size, inode;
    int64_t mtime_ns;
    char name[TREE_NAME_MOST + 1];
};

/* Is it the name of a part or of a note? */
bool part_is(const char *name);

/* Reads the note `entry`; -1 if it is none, or not the note of the name within. */
int part_note_read(struct part_note *note, int folder, const char *entry);

/* The same for the note of the file `name`. */
int part_note_of(struct part_note *note, int folder, const char *name);

/* Opens the part of `name` to look at: -1 unless part_open() would go on with it. */
int part_look(int folder, const char *name);

/* Opens the part of the file that `record` announces, locked and cut to record->from.
 * What else has that name is removed. -1 with a reason to free in `*why`, NULL where
 * memory is short. */
int part_open(int folder, const char *name, const struct tree_record *record,
              char **why);

/* Gives it its own name, and removes the note. -1 with errno. */
int part_publish(int folder, const char *name);

/* A symbolic link is made as a part, too. -1 as part_open(). */
int part_link(int folder, const char *name, const char *target, char **why);

/* Removes part and note. */
void part_drop(int folder, const char *name);

#endif
