/* A tree of files as one stream: what rdcp's source says to its sink.
 *
 *   stream: record ... record; each a header of 8 bytes, little-endian, and a body
 *     0  u8   kind
 *     1  u8   zero
 *     2  u16  length of the name, which is the end of the body
 *     4  u32  length of the body, the name included
 *
 *   kind      body before the name                              name
 *   1 start   version u32, then, in this version, the boot id    none
 *   2 enter   attributes 40                                      of a directory
 *   3 leave   nothing: the directory last entered is complete    none
 *   4 file    attributes 40, size u64, from u64                  of a file
 *   5 data    offset u64, up to 1 MiB of bytes                   none
 *   6 whole   sound u32, zero u32, checksum u64                  none
 *   7 link    attributes 40, what it leads to: device u32,       target, then the name
 *             inode u64; the length of the target u32
 *   8 part    size u64, inode u64, mtime s64, have u64, sum u64  path below DST
 *   9 end     errors u64, files u64, bytes u64                   none
 *  10 target  device u64, inode u64                              boot id
 *
 *   attributes: mode u32, uid u32, gid u32, device u32, inode u64, mtime in ns s64,
 *   atime in ns s64
 *
 * A file is `file data ... data whole`; what no data covers is a hole. `from` says that
 * the sink's part, up to there, is what the source has. `sound` is 0 if the source could
 * not read the file to its end or it changed meanwhile: the sink throws it away.
 * Device and inode tell a sink on the source's machine, which the boot id names, what it
 * must not replace: the source itself.
 * A name is one component: not empty, no "/", no NUL, not "." or ".."; the directory
 * entered first may have none and is DST itself then.
 *
 * `start target part ... part end` is the list of what a sink holds of earlier copies. The
 * target is the folder that it copies into.
 */
#ifndef TREE_H
#define TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

enum {
    TREE_VERSION = 3,
    TREE_HEADER = 8,
    TREE_NAME_MOST = 255,
    TREE_PATH_MOST = 65535,
    TREE_DATA_MOST = 1 << 20,
    TREE_BODY_MOST = TREE_DATA_MOST + 8,
};

enum tree_kind {
    TREE_START = 1,
    TREE_ENTER,
    TREE_LEAVE,
    TREE_FILE,
    TREE_DATA,
    TREE_WHOLE,
    TREE_LINK,
    TREE_PART,
    TREE_END,
    TREE_TARGET,
};

struct tree_attributes {
    uint32_t mode, uid, gid;
    uint32_t device; /* Linux has no more bits of it */
    uint64_t inode;
    int64_t mtime_ns, atime_ns;
};

struct tree_record {
    enum tree_kind kind;
    struct tree_attributes attributes;
    uint64_t size, from;          /* file; part: `from` is what it has */
    uint64_t device, inode;       /* target; link: of what it leads to; part: inode */
    uint64_t offset;              /* data */
    const uint8_t *data;          /* data; not owned */
    uint32_t length;              /* of the data; start: the version; whole: sound */
    uint64_t sum;                 /* whole, part */
    uint64_t errors, files, bytes; /* end */
    char name[TREE_NAME_MOST + 1]; /* start, target: the boot id, "" = unknown */
    char target[4096];             /* link */
    char *path; /* part; points into the reader's buffer until the next record */
};

/* Is it a name as records have it: one component, not "." or ".."? */
bool tree_is_name(const char *name, size_t length);

/* Appends one record; data with its bytes. 0, or -1 when memory is short. */
int tree_put(struct bytes *into, const struct tree_record *record);

/* Reads the record at the head of `bytes`. How long it is; 0: more bytes are needed;
 * -1: it is none, `*why` says so. */
long tree_get(struct tree_record *record, const uint8_t *bytes, size_t length,
              const char **why);

#endif
