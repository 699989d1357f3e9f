/* Linked into a tool: each of its threads is interrupted some 2000 times a second by a
 * signal that is caught and restarts nothing, so that every call which may end with EINTR
 * does so. `make storm` puts such tools into build/storm/. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_NS = 500000 };

static void heard(int number)
{
    (void)number;
}

static void *bombard(void *argument)
{
    DIR *threads = argument;
    pid_t process = getpid(), self = (pid_t)syscall(SYS_gettid);
    const struct timespec pause = {0, PAUSE_NS};
    for (;; nanosleep(&pause, NULL)) {
        struct dirent *entry;
        rewinddir(threads);
        while ((entry = readdir(threads))) {
            pid_t thread = (pid_t)atoi(entry->d_name);
            if (thread > 0 && thread != self)
                syscall(SYS_tgkill, process, thread, SIGUSR1);
        }
    }
    return NULL;
}

__attribute__((constructor)) static void begin(void)
{
    struct sigaction caught = {.sa_handler = heard};
    pthread_t thread;
    sigset_t all, before;
    DIR *threads = opendir("/proc/self/task");
    sigfillset(&all);
    sigaction(SIGUSR1, &caught, NULL);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the tool's signals are the tool's */
    if (!threads || pthread_create(&thread, NULL, bombard, threads))
        abort();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
