/* Sink of rdcp: creates files and trees below DST:
 *
 *   tree_sink.c    reads the stream
 *   tree_folder.c  folders, their existing entries, and space on the disk
 *   tree_file.c    files: requests for their bodies, answers, bodies, names
 *   tree_crew.c    threads */
#pragma once

#include <pthread.h>

#include "tree_hash.h"
#include "tree.h"
#include "tree_report.h"

struct tree_folder { /* open until its last file is settled */
    struct tree_folder *up; /* NULL: the folder that takes the names at the top */
    int fd;                 /* -1: nothing can be created in it */
    unsigned uses;          /* child folders and files, plus 1 while the stream is inside */
    bool made;              /* created by this run, hence empty before */
    struct tree_attributes attributes;
    char name[TREE_NAME_MOST + 1]; /* "" = DST itself */
};

enum tree_state {
    FILE_SOUGHT, /* a thread looks up the existing file of that name */
    FILE_ASKED, /* its body is requested */
    FILE_BEGUN, /* its body arrives; no destination chosen yet */
    FILE_COMPARED, /* the existing file is compared: kept if the hash matches; if not, a body
                      from 0 is requested */
    FILE_IN_MEMORY,
    FILE_IN_PART,
    FILE_NOWHERE, /* given up: the body is discarded */
    FILE_GIVEN,   /* handed to a thread */
};

struct tree_file { /* an announced file, until its final answer */
    uint64_t number, size, room;
    uint64_t from; /* offset at which the requested body starts */
    struct tree_folder *folder;
    struct tree_attributes attributes;
    enum tree_state state;
    int tries;
    bool replaces; /* a file of that name existed */
    int fd;        /* of its part file, locked; -1: not open, or given up */
    struct bytes content;
    struct tree_file *next; /* next file in the same batch for a thread */
    int error; /* errno of the thread; 0: success */
    struct tree_lost lost;
    struct stat stat; /* of the existing entry of that name; inode 0: no entry */
    char name[];
};

enum { CREW_THREADS = 4 };

struct tree_crew { /* threads that look up and write small files in parallel to the stream */
    struct tree_thread {
        struct tree_crew *crew;
        pthread_t thread;
        int todo[2]; /* pipes that carry pointers to batches of files */
        struct tree_file *first, **end; /* the next batch for this thread */
        unsigned count;
    } thread[CREW_THREADS];
    unsigned threads;
    int done[2];
    struct tree_file *back; /* the finished batch that is being taken */
    struct tree_file *sought, **sought_end; /* the next batch to look up */
    unsigned sought_count, seeking; /* files in that batch; batches that are looked up */
    size_t busy; /* files in batches that were handed out and not yet taken back */
};

struct sink {
    const struct rdcp_options *options;
    const char *target;
    char **asked; /* requested sources: the only names allowed at the top of the stream */
    size_t asked_count, asked_at; /* index of the last match */
    bool many; /* more than one source: DST has to be a directory */
    struct tree_line line;
    struct tree_folder *top, *in; /* the current folder of the stream */
    int depth;
    char *rename;   /* new name of the only source; "" = DST is its copy, begun by an earlier
                       run; NULL = keep its name */
    bool slash;     /* the target ends in a slash: only a folder may take that name */
    int no_top;     /* errno; the reason why `top` could not be opened */
    struct tree_file *files[TREE_WINDOW];
    uint64_t next; /* number of a file */
    struct tree_record run; /* the pending answer; more files may join */
    unsigned due;           /* files with an answer that is still queued */
    struct tree_file *body; /* the one being received */
    struct tree_crew crew;
    struct tree_hash hash;
    struct tree_scratch { /* file that shows which attributes its file system stores */
        int fd; /* -1: none could be made */
        bool made;
        dev_t device;
    } scratch;
    struct tree_made made; /* entries that this run has placed or kept */
    uint64_t errors, count, bytes, had;
    bool started, found, ended;
    bool cut; /* the stream stopped before its end */
    bool refused; /* this stream, or DST */
    bool source_here; /* on this machine: an existing entry may be the source itself */
};

/* Functions that take a record return NULL, or the reason why the record is invalid here. */

/* --- tree_folder.c --- */

/* Print an error about a name in the folder (NULL: at the top) and count it. */
void tree_sink_complain(struct sink *sink, const struct tree_folder *folder,
                        const char *name, const char *what);

/* Report lost metadata, except for a mode that the file system cannot store. */
void tree_sink_not_kept(struct sink *sink, const struct tree_folder *folder, const char *name,
                        struct tree_lost lost, const struct tree_attributes *to);

/* Return true if the existing entry `is` has the attributes `to`, or those that its file system
 * makes of them: vfat stores times in steps of 2 s and no modes. */
bool tree_same_time(struct sink *sink, const struct tree_folder *folder,
                    const struct tree_attributes *is, const struct tree_attributes *to);
bool tree_same_mode(struct sink *sink, const struct tree_folder *folder,
                    const struct tree_attributes *is, const struct tree_attributes *to);
const char *tree_sink_name(const struct sink *sink, const struct tree_record *record);

/* Open the folder for the names at the top by cp's rules: DST if it is a directory. If it is not,
 * and there is only one source, the parent of DST. */
void tree_folder_top(struct sink *sink);
void tree_folder_enter(struct sink *sink, const struct tree_record *record);

/* Leave the folder. Finish it if this was its last use. */
void tree_folder_leave(struct sink *sink, struct tree_folder *folder);

/* Return NULL, or the reason why the existing entry `state` must not be replaced by a source with
 * the attributes `own`; `link`: its record, if it is a symbolic link. */
const char *tree_conflict(const struct sink *sink, const struct tree_folder *folder,
                          const char *name, const struct tree_attributes *own,
                          const struct tree_record *link, const struct stat *state);

/* Return NULL, or the reason why the disk certainly lacks room for the file. Otherwise a full disk
 * is noticed when the file is written. The caller frees the text. */
char *tree_no_room(const struct tree_file *file);

/* Return "a/b/name" from the top; the caller frees it. */
char *tree_folder_path(const struct tree_folder *folder, const char *name);

/* --- tree_crew.c --- */

/* Start the threads. Return -1 with errno if no thread can be started. */
int tree_crew_open(struct tree_crew *crew);
void tree_crew_close(struct tree_crew *crew);

/* Have the name looked up. Return true if finished files may be available now. */
bool tree_crew_seek(struct tree_crew *crew, struct tree_file *file);

/* True if no file may be written now before a finished one is taken back. */
bool tree_crew_full(const struct tree_crew *crew);

/* Have a file written that is complete in memory. */
void tree_crew_write(struct tree_crew *crew, struct tree_file *file);
void tree_crew_flush(struct tree_crew *crew); /* hands out the incomplete batches */

/* Take back a finished file: its `stat`, `error` and `lost` are set. NULL if none is available or,
 * if `waits`, if no batch is handed out. */
struct tree_file *tree_crew_next(struct tree_crew *crew, const struct tree_made *made, bool waits);

/* --- tree_file.c --- */

const char *tree_file_take(struct sink *sink, const struct tree_record *record);

/* Wait for the threads and process all their files. */
void tree_file_await(struct sink *sink);

/* Return NULL if an entry may be created or replaced under that name, else the reason why not. Set
 * `state` to that of the existing entry. `own`: attributes of the source's entry; `link`: its
 * record, if it is a symbolic link. */
const char *tree_in_the_way(struct sink *sink, const struct tree_folder *folder,
                            const char *name, const struct tree_attributes *own,
                            const struct tree_record *link, struct stat *state);

void tree_file_answers(struct sink *sink); /* sends the queued answers */

/* Release all files after the end. */
void tree_file_drop_all(struct sink *sink);

const char *tree_file_body(struct sink *sink, const struct tree_record *record);
const char *tree_file_data(struct sink *sink, const struct tree_record *record);
void tree_file_whole(struct sink *sink, const struct tree_record *record);

/* Discard a body that is incomplete: remove a short part file, keep a longer one for resuming. */
void tree_file_drop_body(struct sink *sink);
