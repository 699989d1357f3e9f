/* Exit status of a chain: see pipe_end.h. */
#include "pipe_end.h"

enum { READER_GONE = 128 + 13 }; /* SIGPIPE */

static bool content(const struct end_status *end)
{
    if (!end->command)
        return end->status == 0;
    return end->command_status == 0 || end->command_status == READER_GONE;
}

void exit_status_settle(struct end_status *ends, size_t count)
{
    for (size_t i = count - 1; i-- > 0;)
        if (ends[i].command && ends[i].command_status < 0 && ends[i].status > 0 &&
            content(&ends[i + 1]))
            ends[i].command_status = READER_GONE;
}

bool exit_status_failed(const struct end_status *ends, size_t count, size_t which)
{
    const struct end_status *end = &ends[which];
    if (end->command_status > 0)
        return true;
    if (end->status == 0)
        return false;
    return which + 1 < count ? !content(&ends[which + 1])
                             : !end->command || end->command_status != 0;
}

int exit_status(const struct end_status *ends, size_t count, size_t *which)
{
    int status = 0;
    for (size_t i = 0; i < count; i++) {
        bool file_failed = !ends[i].command && i + 1 == count && ends[i].order;
        int own = ends[i].command_status;
        if (own > 0 || (status == READER_GONE && file_failed)) {
            status = own > 0 ? own : ends[i].status;
            *which = i;
        }
    }
    if (status)
        return status;
    int first = 0;
    for (size_t i = 0; i < count; i++)
        if (exit_status_failed(ends, count, i) &&
            (!status || (ends[i].order && (!first || ends[i].order < first)))) {
            status = ends[i].status > 0 ? ends[i].status : 1;
            first = ends[i].order;
            *which = i;
        }
    return status;
}
