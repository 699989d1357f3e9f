/* What makes files and trees below DST: tree_sink.c takes the stream, tree_folder.c knows
 * the folders, tree_file.c the files, tree_answer.c what is said of them, tree_place.c how
 * they get their names and what is in the way of that, tree_links.c their other names,
 * tree_manifest.c their sums. */
#pragma once

#include <pthread.h>

#include "tree_attributes.h"
#include "tree_hash.h"
#include "tree_io.h"
#include "tree_sides.h"

struct tree_folder { /* open until the last file in it is settled */
    struct tree_folder *up; /* NULL: where the names at the top go */
    int fd;                 /* -1: nothing can go in */
    unsigned uses;          /* folders and files within, and the stream while it is in it */
    bool absent;            /* in a dry run: it would be made */
    bool made;              /* it was not there: nor is what comes into it */
    struct tree_attributes attributes;
    struct tree_xattr *xattrs;
    struct words seen; /* of --delete: each name that came */
    char name[TREE_NAME_MOST + 1]; /* "" = DST itself */
};

enum tree_state {
    FILE_SOUGHT, /* by a thread: what has its name? */
    FILE_ASKED, /* for its body */
    FILE_BEGUN, /* the body comes, and goes: */
    FILE_COMPARED, /* nowhere: it is there already if the hash is the same; if not, all
                      of it is asked for */
    FILE_IN_MEMORY,
    FILE_IN_PART,
    FILE_NOWHERE, /* it was given up */
    FILE_GIVEN,   /* to a thread */
};

struct tree_file { /* that was announced, until its last answer */
    uint64_t number, size, room, links;
    uint64_t from; /* where the body that was asked for begins */
    struct tree_folder *folder;
    struct tree_attributes attributes;
    struct tree_xattr *xattrs;
    enum tree_state state;
    int tries;
    bool replaces; /* something had its name */
    int fd;        /* of its part, locked; -1: not yet, or given up */
    struct bytes content;
    struct tree_file *next; /* of those that a thread gets with it */
    int error; /* what came of it in a thread; 0: it has its name */
    struct tree_lost lost;
    struct stat stat; /* of what has its name; without an inode: nothing has */
    char name[];
};

enum { CREW_THREADS = 4 };

struct sink;

/* What has the name of a file is known: goes on with it. */
typedef void tree_go_on(struct sink *sink, struct tree_file *file);

struct tree_crew { /* threads that seek and write small files, while the stream goes on */
    const struct rdcp_options *options; /* not owned */
    tree_go_on *go_on;
    struct tree_thread {
        const struct tree_crew *crew;
        pthread_t thread;
        int todo[2]; /* pointers to rows of files go through pipes */
        struct tree_file *first, **end; /* the row that it gets next */
        unsigned count;
    } thread[CREW_THREADS];
    unsigned threads;
    int done[2];
    struct tree_file *back; /* the row that is being taken back */
    struct tree_file *sought, **sought_end; /* the row that is to be sought next */
    unsigned sought_count, seeking; /* files in it; rows that threads seek */
    size_t busy; /* files that were given and not taken back */
};

struct tree_names { /* of files with more than one, in the order of their numbers */
    struct tree_one_name {
        uint64_t number; /* of the file */
        char *path;      /* from the top */
        bool placed;
    } *row;
    size_t count;
};

struct sink {
    const struct rdcp_options *options;
    const char *target;
    char **asked; /* the sources; what the stream has at its top is called as they are */
    size_t asked_count, asked_at; /* where the last one was found */
    struct tree_line line;
    struct tree_folder *top, *in; /* where the stream is */
    int depth;
    char *rename;   /* what the one source is called; "" = DST is its copy, which a run
                       before began; NULL = it is called as it is */
    bool slash;     /* behind the name that is to come: only a folder can have it */
    int no_top;     /* errno; why there is no `top` */
    struct tree_file *files[TREE_WINDOW];
    uint64_t next; /* number of a file */
    struct tree_record run; /* an answer that more files may have */
    unsigned due;           /* files with an answer that has not gone out */
    struct tree_file *body; /* the one being received */
    struct tree_crew crew;
    struct tree_hash hash;
    struct tree_xattr *xattrs; /* of what comes next */
    struct tree_made made;
    struct tree_names first_names, other_names;
    struct words manifest; /* paths of regular files, from the top */
    size_t manifest_skip;  /* so much of each is not written */
    struct words extra; /* of --delete */
    uint64_t errors, count, bytes, had;
    bool started, found, ended;
    bool cut; /* the stream ended before its end */
    bool source_here; /* on this machine: what it has may be what stands here */
};

/* Says on stderr what is wrong about a name in the folder (NULL: at the top); counts it. */
void tree_sink_complain(struct sink *sink, const struct tree_folder *folder,
                        const char *name, const char *what);
void tree_sink_not_kept(struct sink *sink, const struct tree_folder *folder,
                        const char *name, struct tree_lost lost);
const char *tree_sink_name(const struct sink *sink, const struct tree_record *record);

/* Is `state` what the source has as this? */
bool tree_sink_is_one(const struct sink *sink, uint64_t device, uint64_t inode,
                      const struct stat *state);

/* It has its name now, or had it before. */
void tree_sink_remember(struct sink *sink, const struct tree_folder *folder,
                        const char *name, const struct stat *state);

/* What takes a record returns why it has no place here, or NULL. */

/* Opens where the names at the top go, as cp decides: into DST if that is a directory,
 * else beside it, if there is one source. */
void tree_folder_top(struct sink *sink);
void tree_folder_enter(struct sink *sink, const struct tree_record *record);
void tree_folder_leave(struct sink *sink, struct tree_folder *folder); /* ends one use */

/* "a/b/name", from the top; to free. */
char *tree_folder_path(const struct tree_folder *folder, const char *name);

/* Is what has the name something that this, which the record announces, may not take the
 * place of? `state` without an inode: there is nothing. */
const char *tree_in_the_way(struct sink *sink, const struct tree_folder *folder,
                            const char *name, const struct tree_attributes *own,
                            const struct tree_record *link, struct stat *state);

/* The same of what a thread has found, `state`. */
const char *tree_found_in_the_way(const struct sink *sink, const struct tree_folder *folder,
                                  const char *name, const struct tree_attributes *own,
                                  const struct tree_record *link, const struct stat *state);

/* Removes what `path` names, and all below it, through no link. -1 with errno. */
int tree_remove(int base, const char *path);

void tree_file_answers(struct sink *sink); /* those that are due go out */
void tree_file_answer(struct sink *sink, const struct tree_file *file,
                      enum tree_verdict verdict, uint64_t from);
const char *tree_file_take(struct sink *sink, const struct tree_record *record);
const char *tree_file_body(struct sink *sink, const struct tree_record *record);
const char *tree_file_data(struct sink *sink, const struct tree_record *record);
void tree_file_whole(struct sink *sink, const struct tree_record *record);

/* What was asked for is dropped where there is little of it, else it stays, to go on. */
void tree_file_drop(struct sink *sink);

/* The file is over; `state` is that of what has its name now, NULL: nothing has. */
void tree_file_settle(struct sink *sink, struct tree_file *file, enum tree_verdict verdict,
                      const struct stat *state);

/* What has its name is in `stat` and `error`. */
tree_go_on tree_file_sought;

/* What is still to come of its body is passed over. */
void tree_file_give_up(struct sink *sink, struct tree_file *file, const char *why);
void tree_file_refuse(struct sink *sink, struct tree_file *file, const char *why);

/* Files get their names; -1 with errno where there are no threads. */
int tree_place_open(struct sink *sink, tree_go_on *go_on);
void tree_place_close(struct sink *sink);
void tree_place_seek(struct sink *sink, struct tree_file *file); /* what has its name */
void tree_place_begin(struct sink *sink, struct tree_file *file); /* its part */
void tree_place(struct sink *sink, struct tree_file *file);
void tree_place_all(struct sink *sink); /* goes on with all that the threads have */

/* A file of more names is announced: where the first one is; and that it is there. */
void tree_links_first(struct sink *sink, uint64_t number, const char *name);
void tree_links_placed(struct sink *sink, uint64_t number);

/* Another one, in the folder that is being filled (NULL: it does not get it). False: there
 * is no such file. */
bool tree_links_other(struct sink *sink, uint64_t number, const char *name);
void tree_links_make(struct sink *sink);
void tree_names_close(struct tree_names *names);

/* The list of SHA-256 sums, each of a file that is read again from the disk, on stdout. */
void tree_manifest_write(struct sink *sink);
