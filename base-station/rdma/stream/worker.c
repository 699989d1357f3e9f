/* The thread that reads or writes the stream: see worker.h. */
#include "worker.h"

#include <poll.h>
#include <string.h>

enum { LOOK_MS = 10 };

int worker_start(struct worker *worker, void *(*work)(void *), void *argument,
                 struct trouble *trouble)
{
    int error = pthread_create(&worker->thread, NULL, work, argument);
    if (error)
        return troubled(trouble, EXIT_FAULT, "no thread: %s", strerror(error));
    worker->started = true;
    return 0;
}

void worker_over(struct worker *worker)
{
    atomic_store(&worker->over, true);
    ring_wake(worker->ring);
}

void worker_await(struct worker *worker, int limit_ms)
{
    for (int64_t end_ms = now_ms() + limit_ms;
         !atomic_load(&worker->over) && now_ms() < end_ms;) {
        struct pollfd polled = {worker->ring->wake_fd, POLLIN, 0};
        poll(&polled, 1, LOOK_MS);
        ring_woken(worker->ring);
    }
}

bool worker_join(struct worker *worker)
{
    if (worker->started && !atomic_load(&worker->over))
        return false;
    if (worker->started)
        pthread_join(worker->thread, NULL);
    worker->started = false;
    return true;
}
