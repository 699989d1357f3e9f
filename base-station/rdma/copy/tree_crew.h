/* Threads that write small files, while the stream goes on: most of what such a file costs
 * is the file system's, and waits for nothing. Files of one name go to one thread, so that
 * the first of them is the first to have it. */
#ifndef TREE_CREW_H
#define TREE_CREW_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "bytes.h"
#include "tree_io.h"

enum { CREW_THREADS = 4 };

/* A file whose content was judged, and that nothing is to be in the way of. */
struct tree_small {
    /* Until it is taken back none but its thread touches these. */
    int folder;
    const char *name;
    struct bytes content;
    const struct tree_attributes *attributes;
    const struct tree_xattr *xattrs;

    /* What came of it. */
    int error;        /* 0: it has its name; ENOTSUP: it has to have one from the start */
    const char *lost; /* which attributes could not be kept */
    int lost_error;
    struct stat state;
    struct tree_small *next;
};

struct tree_small_row {
    struct tree_small *first, *last;
};

struct tree_crew {
    const struct rdcp_options *options; /* not owned */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct tree_worker {
        struct tree_crew *crew;
        pthread_t thread;
        pthread_cond_t given;
        struct tree_small_row todo;
    } worker[CREW_THREADS];
    unsigned threads;
    size_t busy, working; /* that were not taken back; that are not done */
    struct tree_small_row done;
    bool over;
};

/* Without a thread each file is written when it is given. */
void tree_crew_open(struct tree_crew *crew, const struct rdcp_options *options);
void tree_crew_give(struct tree_crew *crew, struct tree_small *file);

/* One that is done; NULL: there is none, or, if it `waits`, none is left. */
struct tree_small *tree_crew_take(struct tree_crew *crew, bool waits);

/* The first of those that were not taken back, when all are done. */
struct tree_small *tree_crew_wait(struct tree_crew *crew);
void tree_crew_close(struct tree_crew *crew);

#endif
