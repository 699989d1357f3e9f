/*
 * Linked into a tool: sends each of its threads a signal some 2000 times a second. The signal is
 * caught without restarting system calls, so that every call that may end with EINTR does so. `make
 * storm` builds these tools in build/storm/.
 */
#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_NS = 500000 };
static sem_t begun;

static void heard(int number)
{
    (void)number;
}

static void interrupt_each(DIR *threads, pid_t process, pid_t self)
{
    struct dirent *entry;
    rewinddir(threads);
    while ((entry = readdir(threads))) {
        pid_t thread = (pid_t)atoi(entry->d_name);
        if (thread > 0 && thread != self)
            syscall(SYS_tgkill, process, thread, SIGUSR1);
    }
}

static void *bombard(void *argument)
{
    DIR *threads = argument;
    pid_t process = getpid(), self = (pid_t)syscall(SYS_gettid);
    const struct timespec pause = {0, PAUSE_NS};
    interrupt_each(threads, process, self);
    sem_post(&begun);
    for (;; nanosleep(&pause, NULL))
        interrupt_each(threads, process, self);
    return NULL;
}

/*
 * Start the thread and wait until it is running. A starting thread holds locks of the sanitizer; if
 * the tool forked at that time, the child would deadlock on them.
 */
__attribute__((constructor)) static void begin(void)
{
    struct sigaction caught = {.sa_handler = heard};
    pthread_t thread;
    sigset_t all, before;
    DIR *threads = opendir("/proc/self/task");
    sigfillset(&all);
    sigaction(SIGUSR1, &caught, NULL);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* keep the tool's signals away from this thread */
    if (!threads || sem_init(&begun, 0, 0) ||
        pthread_create(&thread, NULL, bombard, threads) || sem_wait(&begun))
        abort();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
