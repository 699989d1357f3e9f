/* What has arrived of a file NAME stands in .NAME.rdcp-part, until it is whole;
 * .NAME.rdcp-from says beside it of which file it is:
 *
 *   SIZE INODE MTIME_NS
 *   NAME
 *
 * Where such a name is too long a checksum stands in it for NAME. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tree.h"

enum { PART_LEAST = 1 << 20 }; /* shorter files begin anew */

/* Is it the name of a part or of a note? */
bool part_is(const char *name);

/* Opens and locks the part of the file if there is one whose note names this very file:
 * `*from` is how much it has. -1 otherwise. */
int part_resume(int folder, const char *name, const struct tree_attributes *of,
                uint64_t size, uint64_t *from);

/* Opens an empty part, locked, with its note. What else has that name is removed. -1
 * with a reason to free in `*why`. */
int part_open(int folder, const char *name, const struct tree_attributes *of,
              uint64_t size, char **why);

/* Opens a file without a name: if the process dies, nothing is left of it. -1 where the
 * file system knows none (NFS, vfat). */
int part_nameless(int folder, mode_t mode);

/* Writes all of it there. -1 with errno. */
int part_write(int fd, const void *bytes, size_t length, uint64_t offset);

/* Names it, if nothing has that name. -1 with errno. */
int part_name_it(int fd, int folder, const char *name);

/* Gives it its own name, or removes it; the note goes in any case. -1 with errno. */
int part_publish(int folder, const char *name);

/* The entry of the folder is a part or a note: removes it, unless somebody is writing it.
 * A part comes before its note. */
void part_tidy(int folder, const char *entry);

/* A symbolic link is made as a part, too. -1 with a reason to free in `*why`. */
int part_link(int folder, const char *name, const char *target, char **why);

/* So is another name for the file `first` of the folder `from`. -1 with errno. */
int part_hard(int from, const char *first, int folder, const char *name);

/* Removes part and note. */
void part_drop(int folder, const char *name);
