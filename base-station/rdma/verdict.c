/* What a chain's ends said, as one exit status: see verdict.h. */
#include "verdict.h"

static bool content(const struct verdict_end *end)
{
    return end->command ? end->command_status == 0 : end->status == 0;
}

bool verdict_failed(const struct verdict_end *ends, size_t count, size_t which)
{
    const struct verdict_end *end = &ends[which];
    if (end->command && end->command_status > 0)
        return true;
    if (end->status == 0)
        return false;
    return which + 1 < count ? !content(&ends[which + 1])
                             : !end->command || end->command_status != 0;
}

int verdict(const struct verdict_end *ends, size_t count, size_t *which)
{
    int status = 0;
    for (size_t i = 0; i < count; i++)
        if (ends[i].command && ends[i].command_status > 0) {
            status = ends[i].command_status;
            *which = i;
        }
    for (size_t i = 0; i < count && !status; i++)
        if (verdict_failed(ends, count, i)) {
            status = ends[i].status > 0 ? ends[i].status : 1;
            *which = i;
        }
    return status;
}
