/* What transport_verbs.h promises, on a machine without librdmacm: nothing. */
#include <errno.h>
#include <stddef.h>

#include "transport_verbs.h"

bool verbs_has(const struct sockaddr *address)
{
    (void)address;
    return false;
}

bool verbs_any_device(void)
{
    return false;
}

struct transport *verbs_dial(const struct sockaddr *address, const struct sockaddr *from,
                             const struct options *options, uint32_t credits,
                             int64_t limit_ms, struct trouble *trouble)
{
    (void)address, (void)from, (void)options, (void)credits, (void)limit_ms;
    fault(trouble, "built without librdmacm");
    return NULL;
}

struct verbs_listener *verbs_listen(const struct sockaddr *bound,
                                    const struct options *options, uint32_t credits,
                                    struct trouble *trouble)
{
    (void)bound, (void)options, (void)credits;
    errno = ENODEV;
    fault(trouble, "built without librdmacm");
    return NULL;
}

int verbs_listener_fd(const struct verbs_listener *listener)
{
    (void)listener;
    return -1;
}

struct transport *verbs_accept(struct verbs_listener *listener)
{
    (void)listener;
    return NULL;
}

void verbs_listener_close(struct verbs_listener *listener)
{
    (void)listener;
}
