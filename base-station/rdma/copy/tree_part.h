/* Part files. The received bytes of a file NAME are stored in .NAME.rdcp-part until the file is
 * complete. The note .NAME.rdcp-from beside it identifies the source file:
 *
 *   SIZE INODE MTIME_NS
 *   NAME
 *
 * A checksum replaces NAME if the result would be too long. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tree.h"

enum { PART_LEAST = 1 << 20 }; /* shorter files restart from 0 */

/* True if this is the name of a part file or of a note. */
bool part_is(const char *name);

/* Open and lock the part file if its note identifies this very file, and set `*from` to its length.
 * Return -1 otherwise. */
int part_resume(int folder, const char *name, const struct tree_attributes *of,
                uint64_t size, uint64_t *from);

/* Open an empty, locked part file and write its note. Remove any other file of that name. Return -1
 * with a reason in `*why`, to be freed by the caller. */
int part_open(int folder, const char *name, const struct tree_attributes *of,
              uint64_t size, char **why);

/* Open a file without a name: if the process dies, the kernel removes it. Return -1 if the file
 * system does not support such files (NFS, vfat). */
int part_nameless(int folder, mode_t mode);

/* Open a file that is removed when it is closed, with or without a name before. Return -1 with
 * errno on failure. */
int part_scratch(int folder);

/* Write all bytes at `offset`. Return -1 with errno on failure. */
int part_write(int fd, const void *bytes, size_t length, uint64_t offset);

/* Name the file unless that name exists. Return -1 with errno on failure. */
int part_name_it(int fd, int folder, const char *name);

/* Rename the part file to its final name, or remove it on failure. Remove the note in both cases.
 * Return -1 with errno on failure. */
int part_publish(int folder, const char *name);

/* Remove a part file or a note from the folder, unless a process is writing it. Call this for a
 * part file before its note. */
void part_tidy(int folder, const char *entry);

/* Create a symbolic link as a part file, then rename it. Return -1 with a reason in `*why`, to be
 * freed by the caller. */
int part_link(int folder, const char *name, const char *target, char **why);

/* Remove the part file and its note. */
void part_drop(int folder, const char *name);
