/* Threads that do a piece of work each, while the stream goes on. */
#pragma once

#include <pthread.h>
#include <stddef.h>

enum { CREW_THREADS = 4, CREW_MOST = 256 }; /* pieces that are not taken back */

struct tree_crew {
    void (*work)(void *piece, const void *options);
    const void *options; /* not owned */
    struct crew_thread {
        struct tree_crew *crew;
        pthread_t thread;
        int todo[2]; /* pointers to pieces go through pipes */
    } thread[CREW_THREADS];
    unsigned threads;
    int done[2];
    size_t busy; /* pieces that are not taken back */
};

/* -1 with errno. */
int tree_crew_open(struct tree_crew *crew, void (*work)(void *, const void *),
                   const void *options);

/* Of one `name` all go to one thread, which does them in their order. */
void tree_crew_give(struct tree_crew *crew, void *piece, const char *name);

/* Waits for one that is done; there has to be one that is `busy`. */
void *tree_crew_take(struct tree_crew *crew);
void tree_crew_close(struct tree_crew *crew);
