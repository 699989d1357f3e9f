/* Protocol between the two sides of rdcp: one stream of records in each direction.
 *
 *   source                                   sink
 *     start                      ->
 *     (walks ahead: enter file file ...)                      while the sink starts
 *                                <-            target         the folder it copies into
 *     enter file file link enter file ...  ->                 the walk continues ...
 *                                <-            answer answer  ... while answers arrive
 *     body data ... data whole   ->                           a requested body
 *                                <-            answer         placed, or again
 *     leave ... end              ->
 *                                <-            bye            all files are settled
 *
 * Before the target is known, the source sends only the start. If a walked folder turns out to be
 * the target itself, the walk restarts and skips that folder.
 *
 * Files are numbered from 0 in the order of their announcements. At most TREE_WINDOW files may lack
 * a final answer. Each answer carries an offset (`from`) and the number of consecutive files it
 * applies to:
 *
 *   have      the sink already has the file: same size and time, or the same content
 *   send      send a body starting at that offset: the bytes before it are present, in a
 *             part file or, if all bytes are present, in the file to be compared
 *   placed    the body is complete, its hash matches the source's, and the file has its name
 *   again     the hash differs: send a body from 0 (at most TREE_TRIES bodies in all)
 *   refused   the sink has logged the reason and expects nothing more for this file
 *
 * Ranges without data are holes. The hash covers the whole file: holes count as zeros, and the
 * bytes the sink already had are included. `broken` instead of `whole` means that the source could
 * not read the file to its end, or that the file changed; the sink then discards the body.
 *
 * If the boot id shows that the sink runs on the source's machine, device and inode identify the
 * source itself, so that the sink does not replace it. They are 0 for a target on another machine.
 *
 *   record: the head of struct tree_record as it is in memory, little-endian, bytes, name
 *     0  u16  kind                 8  u32  checksum of the record from byte 16 on, without data
 *     2  u16  length of the name  12  u32  checksum of these 12 bytes (XXH64's lower half)
 *     4  u32  length of the bytes 16       attributes, 48 numbers, 80 bytes, name
 *
 * A name is one component: not empty, no "/", no NUL, not "." or "..". The first directory entered
 * may have an empty name and is then DST itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "bytes.h"

enum {
    TREE_VERSION = 8,
    TREE_SUMMED = 16, /* bytes of a head needed to compute the record's length */
    TREE_HEAD = 80,
    TREE_NAME_MOST = 255,
    TREE_HASH_BYTES = 32,
    TREE_DATA_MOST = 256 << 10,
    TREE_WINDOW = 1 << 17,
    TREE_TRIES = 4,
    TREE_DEPTH_MOST = 500, /* nesting of folders */
    TREE_FOLDERS_MOST = 300, /* open folders with files that lack a final answer */
};

/* Contents of each record kind: attributes, number fields of struct tree_record, bytes, a name. */
enum tree_kind {
    TREE_START = 1, /* version; the boot id as bytes */
    TREE_TARGET,    /* device, inode */
    TREE_ENTER,     /* attributes, name */
    TREE_LEAVE,
    TREE_FILE,   /* attributes, size, room (on disk); name */
    TREE_LINK,   /* attributes, device, inode (of the link's target); target; name */
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
    uint32_t mode;
    uint32_t device; /* Linux device numbers fit in 32 bits */
    uint64_t inode;
    int64_t mtime_ns, atime_ns;
};

struct tree_record {
    uint16_t kind, name_length; /* tree_put() sets the name length and the checksums */
    uint32_t length;            /* of the bytes */
    uint32_t sum, head_sum;
    struct tree_attributes attributes;
    union {
        struct { uint64_t size, room; };
        struct { uint64_t body_size, body_number, body_from; };
        struct { uint64_t number, count, verdict, from; };
        struct { uint64_t device, inode; };
        uint64_t version, offset, errors;
        uint8_t hash[TREE_HASH_BYTES];
    };
    const uint8_t *bytes; /* data, target, boot id; points into the reader's buffer */
    char name[TREE_NAME_MOST + 1];
};

/* Append one record. The caller appends the bytes of a data record itself. */
void tree_put(struct bytes *into, const struct tree_record *record);

/* Parse the record at the head of `bytes`. Return its length, 0 if more bytes are needed, or -1
 * with the reason in `*why` if the record is invalid. */
long tree_get(struct tree_record *record, const uint8_t *bytes, size_t length, const char **why);

/* --- records to and from descriptors, and helpers of both sides --- */

/* Both directions between the two sides. A side that is blocked on writing continues to read, so
 * that the two sides cannot deadlock. */
struct tree_line {
    int in, out;
    struct bytes input, output;
    size_t used; /* bytes consumed from the input */
    bool held;   /* only tree_flush() sends the queue */
    size_t most; /* limit on buffered input while the output is blocked */
    bool ended;  /* end of input reached */
    bool lost;   /* output failed; the reason was printed unless the peer closed */
};

void tree_line_open(struct tree_line *line, int in, int out);
void tree_line_close(struct tree_line *line);

/* Queue a record. Large data records are written at once. */
void tree_write(struct tree_line *line, const struct tree_record *record);
void tree_flush(struct tree_line *line);

/* Return 1 with a record, 0 at the end of the stream or, unless `waits`, if no record is available
 * yet, and -1 with a reason. Pointers in the record are valid until the next call. The queued
 * output is flushed before waiting, unless it is held. */
int tree_next(struct tree_line *line, struct tree_record *record, bool waits, const char **why);

/* Return an id that is unique to this boot of this machine, to be freed by the caller, or NULL. */
char *boot_id(void);

/* Open a name of one component. Follow no symbolic link and do not leave `folder`. */
int open_below(int folder, const char *name, int flags, mode_t mode);

/* Set of files by device and inode. A sink stores the files it has made, so that a second source
 * cannot replace them; a source stores the folders it has walked before the target was known. */
struct tree_made {
    struct tree_made_file {
        uint64_t device, inode; /* 0 = a free slot */
    } *file; /* to free */
    size_t count, room; /* a power of two, at least a quarter of it free */
};

bool tree_made_find(const struct tree_made *made, const struct stat *state);

/* Prefetch the file's slot before a lookup or an insertion: in a large set each slot is a cache
 * miss. */
void tree_made_prefetch(const struct tree_made *made, const struct stat *state);

void tree_made_close(struct tree_made *made);
void tree_made_add(struct tree_made *made, const struct stat *state);

/* Return the name under which cp would copy `path`: its last component, without trailing slashes,
 * or "" if the contents go into DST itself (".", "..", "/"). The caller frees the text. */
char *tree_name(const char *path);

/* --- metadata of a file or folder --- */

struct tree_attributes tree_attributes_of(const struct stat *state);
struct timespec timespec_of(int64_t ns);

/* Metadata that could not be kept, and errno. NULL if everything was kept. */
struct tree_lost {
    const char *what;
    int error;
};

/* Apply the mode and the times to the open file or folder `fd`. */
struct tree_lost tree_keep(int fd, const struct tree_attributes *to);

/* --- the sides of a copy --- */

/* Exit status of a side: 0 on success, 1 if the stream was cut, and these. */
enum {
    TREE_SOME_FAILED = 4, /* the stream completed, but an entry was skipped or failed */
    TREE_IN_VAIN,         /* DST or the stream was refused, and would be again */
};

struct rdcp_options {
    bool recursive, verify, no_sync, verbose, json;
    bool checksum; /* compare content instead of size and time */
    bool sha256;
    bool progress; /* stderr is a terminal: show progress */
    bool back;     /* the sink answers on AGENT_BACK_FD instead of stdout */
};

/* Each runs one side to completion and returns an exit status. */
int tree_source(const struct rdcp_options *options, char **names, size_t count);
int tree_sink(const struct rdcp_options *options, const char *target, char **names, size_t count);

/* Compare the tree at `target` with a list of checksums on stdin, in both directions. With `json`,
 * end with a line that counts the checked files and the errors. */
int tree_check(const char *target, bool json);
