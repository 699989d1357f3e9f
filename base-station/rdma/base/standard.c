/* stdin, stdout and stderr that are closed: see standard.h. */
#include "standard.h"

#include <fcntl.h>
#include <unistd.h>

void standard_open(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY) < 0)
            return;
}
