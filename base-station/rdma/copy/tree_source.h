/* Source of rdcp: announces files and trees, and sends the bodies that the sink requests:
 *
 *   tree_source.c  walks the trees
 *   tree_send.c    takes the answers, and sends bodies */
#pragma once

#include "tree_hash.h"
#include "tree.h"
#include "tree_report.h"

struct source_folder {
    int fd; /* open during the walk and while its files may be requested */
    unsigned uses;
    char *path; /* for messages */
};

struct source_job { /* an announced file, until its final answer */
    struct source_folder *folder;
    char *name; /* in that folder; NULL: settled */
    bool sent;  /* its size is included in the progress before it is settled */
    uint64_t size, inode;
    int64_t mtime_ns;
};

struct source {
    const struct rdcp_options *options;
    struct tree_line line;
    struct source_job jobs[TREE_WINDOW];
    uint64_t next, oldest; /* numbers of files */
    size_t folders;        /* number of open folders */
    bool met;  /* the target is known; until then records and errors are held back */
    bool anew; /* the target itself was walked: discard the queue and walk again */
    struct stat target;     /* its device and inode; inode 0: it is on another machine */
    struct tree_made ahead; /* folders walked before the target was known */
    struct tree_progress progress;
    struct tree_hash hash;
    uint64_t errors;
};

/* Take the target record if it is available, or wait for it if `waits`. Return true once the target
 * is known and the walk goes on. */
bool source_meet(struct source *source, bool waits);

/* True if the walk must stop. */
bool source_stopped(const struct source *source);

/* Take one answer if it is available, or wait for it if `waits`: send the requested bodies. Return
 * false if there is none, or the walk must stop. */
bool source_serve(struct source *source, bool waits);

/* Print an error about a name in the folder (NULL: about a source) and count it. */
void source_complain(struct source *source, const struct source_folder *folder,
                     const char *name, const char *what);

/* Return "a/b/name"; the caller frees it. */
char *source_path(const struct source_folder *folder, const char *name);

int source_fd(const struct source_folder *folder); /* for a name in that folder */
int source_open(const struct source_folder *folder, const char *name, bool follow, int flags);
void source_leave(struct source *source, struct source_folder *folder);

/* Discard the announced files. */
void source_forget(struct source *source);
