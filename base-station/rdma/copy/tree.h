/* What the two sides of rdcp say to each other: a stream of records each way.
 *
 *   source                                   sink
 *     start                      ->
 *     (walks ahead: enter file file ...)                      while the sink comes up
 *                                <-            target         what it copies into
 *     enter file file link enter file ...  ->                 the walk goes on ...
 *                                <-            answer answer  ... while answers come
 *     body data ... data whole   ->                           what was asked for
 *                                <-            answer         placed, or once more
 *     leave ... end              ->
 *                                <-            bye            all of it is settled
 *
 * Before the target is known nothing but the start goes out: if a folder that was walked
 * is the target itself, the walk begins anew, without it.
 *
 * Files are numbered from 0 as they are announced; at most TREE_WINDOW of them are
 * without a last answer. Answers to a file (from, and how many files in a row they are for):
 *
 *   have      it is there already: same size and time, or the same content
 *   send      send a body, from that offset on: so much is there, in a part or, where all
 *             is, in the file that is to be compared
 *   placed    the body came whole, its hash is the source's, and it has its name
 *   again     the hash is another: send a body from 0 (at most TREE_TRIES bodies in all)
 *   refused   the sink has said why; nothing more is expected of it
 *
 * What no data covers is a hole. The hash is that of the whole file, holes as zeros and
 * what the sink had included. `broken` in the place of `whole` says that the source could
 * not read the file to its end, or that it changed: the sink throws it away. Extended
 * attributes come before the file or directory they are of.
 * Device and inode tell a sink on the source's machine, which the boot id names, what it
 * must not replace: the source itself. Of a target on another machine they are 0.
 *
 *   record: the head of struct tree_record as it is in memory, little-endian, bytes, name
 *     0  u16  kind                 8  u32  sum of what is behind byte 16, but not of data
 *     2  u16  length of the name  12  u32  sum of these 12 bytes (XXH64's lower half)
 *     4  u32  length of the bytes 16       attributes, 56 numbers, 88 bytes, name
 *
 * A name is one component: not empty, no "/", no NUL, not "." or ".."; the directory
 * entered first may have none and is DST itself then.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

enum {
    TREE_VERSION = 7,
    TREE_SUMMED = 16, /* bytes of a head that tell how long its record is */
    TREE_HEAD = 88,
    TREE_NAME_MOST = 255,
    TREE_HASH_BYTES = 32,
    TREE_DATA_MOST = 256 << 10,
    TREE_WINDOW = 1 << 17,
    TREE_TRIES = 4,
    TREE_DEPTH_MOST = 500, /* of folders within each other */
    TREE_FOLDERS_MOST = 300, /* with files that are without a last answer */
};

/* What each has: attributes, names of numbers in struct tree_record, bytes, a name. */
enum tree_kind {
    TREE_START = 1, /* version; the boot id as bytes */
    TREE_TARGET,    /* device, inode */
    TREE_ENTER,     /* attributes, name */
    TREE_LEAVE,
    TREE_FILE,   /* attributes, size, room (on disk), links; name */
    TREE_LINK,   /* attributes, device, inode (of what it leads to); target; name */
    TREE_HARD,   /* number (of the file that it is); name */
    TREE_XATTR,  /* value as bytes, name of the attribute */
    TREE_BODY,   /* attributes, size, body_number, body_from */
    TREE_DATA,   /* offset; bytes */
    TREE_WHOLE,  /* hash */
    TREE_BROKEN,
    TREE_END,    /* errors */
    TREE_ANSWER, /* number, count, verdict, from */
    TREE_BYE,    /* errors */
    TREE_KINDS,
};

enum tree_verdict {
    TREE_HAVE = 1,
    TREE_SEND,
    TREE_PLACED,
    TREE_AGAIN,
    TREE_REFUSED,
};

struct tree_attributes {
    uint32_t mode, uid, gid;
    uint32_t device; /* Linux has no more bits of it */
    uint64_t inode;
    int64_t mtime_ns, atime_ns;
};

struct tree_record {
    uint16_t kind, name_length; /* tree_put() sets the lengths of names, and the sums */
    uint32_t length;            /* of the bytes */
    uint32_t sum, head_sum;
    struct tree_attributes attributes;
    union {
        struct { uint64_t size, room, links; };
        struct { uint64_t body_size, body_number, body_from; };
        struct { uint64_t number, count, verdict, from; };
        struct { uint64_t device, inode; };
        uint64_t version, offset, errors;
        uint8_t hash[TREE_HASH_BYTES];
    };
    const uint8_t *bytes; /* data, target, value, boot id; a reader's own */
    char name[TREE_NAME_MOST + 1];
};

/* Is it a name as records have it: one component, not "." or ".."? */
bool tree_is_name(const char *name, size_t length);

/* Appends one record, but not the bytes of data: they are to follow. */
void tree_put(struct bytes *into, const struct tree_record *record);

/* Reads the record at the head of `bytes`. How long it is; 0: more bytes are needed;
 * -1: it is none, `*why` says so. */
long tree_get(struct tree_record *record, const uint8_t *bytes, size_t length,
              const char **why);
