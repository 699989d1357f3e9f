/* What makes files and trees below DST: tree_sink.c takes the stream, tree_file.c the files
 * in it, tree_target.c knows what stands there. */
#ifndef TREE_SINK_H
#define TREE_SINK_H

#include "tree_crew.h"
#include "tree_folder.h"
#include "tree_hash.h"
#include "tree_io.h"
#include "tree_sides.h"

struct job { /* a file that was announced, until its last answer */
    struct tree_small small; /* as threads write it */
    uint64_t number, size, from, links;
    struct tree_folder *folder;
    struct tree_attributes attributes;
    struct tree_xattr *xattrs;
    int fd; /* of its part, locked; -1: not yet, or given up */
    int tries;
    bool replaces; /* something had its name */
    bool sum; /* not its body, but its sum is to come */
    char name[];
};

/* Where the body being received goes. */
enum tree_body { BODY_BEGUN, BODY_IN_MEMORY, BODY_IN_PART, BODY_NOWHERE };

struct sink {
    const struct rdcp_options *options;
    const char *target;
    char **asked; /* the sources; what the stream has at its top is called as they are */
    size_t asked_count, asked_at; /* where the last one was found */
    struct tree_line line;
    struct tree_base base;   /* where the names at the top go */
    struct tree_folder top;  /* the same, as a folder */
    struct tree_folder *in;  /* where the stream is */
    int depth;
    struct job *jobs[TREE_WINDOW];
    uint64_t next; /* number of a file */
    struct tree_record run; /* an answer that more files may have */
    unsigned due;           /* files with an answer that has not gone out */
    struct job *body;       /* the one being received */
    uint64_t body_size;
    enum tree_body body_at;
    struct tree_crew crew;
    struct tree_hash hash;
    struct tree_xattr *xattrs; /* of what comes next */
    size_t held; /* parts that are open from the answer to their body */
    struct tree_made made;
    struct tree_links links;
    struct tree_manifest manifest;
    struct words extra; /* of --delete */
    uint64_t errors, files, bytes, had;
    bool started, ended;
    bool cut; /* the stream ended before its end */
    bool source_here; /* on this machine: what it has may be what stands here */
};

/* Of DST. What returns -1 has said why. */
void tree_sink_complain(struct sink *sink, const struct tree_folder *folder,
                        const char *name, const char *what);
int tree_sink_refuse(const char *why);
void tree_sink_not_kept(struct sink *sink, const struct tree_folder *folder,
                        const char *name, const char *what, int error);
void tree_sink_leave(struct sink *sink, struct tree_folder *folder);
const char *tree_sink_name(const struct sink *sink, const struct tree_record *record);

/* Is `state` what the source has as this? */
bool tree_sink_is_one(const struct sink *sink, uint64_t device, uint64_t inode,
                      const struct stat *state);

/* Is what has the name something that this may take the place of? `state` without an
 * inode: there is nothing. */
const char *tree_sink_in_the_way(struct sink *sink, const struct tree_folder *folder,
                                 const char *name, const struct tree_attributes *own,
                                 const struct tree_record *link, struct stat *state);

/* Of several sources two may have one name: what the threads are at is waited for, before
 * anything takes the place of what has a name. */
void tree_sink_one_by_one(struct sink *sink);

/* It has its name now, or had it before. */
void tree_sink_remember(struct sink *sink, const struct tree_folder *folder,
                        const char *name, const struct stat *state);

/* Of the files. */
int tree_file_answers(struct sink *sink); /* those that are due go out */
int tree_file_take(struct sink *sink, const struct tree_record *record);
int tree_file_sum(struct sink *sink, const struct tree_record *record);
int tree_file_body(struct sink *sink, const struct tree_record *record);
int tree_file_data(struct sink *sink, const struct tree_record *record);
int tree_file_whole(struct sink *sink, const struct tree_record *record);

/* Settles what the threads have written; if it `waits`, all that they were given. 1: some
 * was; 0: none; -1. */
int tree_file_written(struct sink *sink, bool waits);

/* What was asked for is dropped where there is little of it, else it stays, to go on. */
void tree_file_drop(struct sink *sink);

#endif
