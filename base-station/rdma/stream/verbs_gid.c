/* The address that --gid-index stands for: see verbs.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

/* Asks the first device that it may be; of `device` so many characters are its name, if
 * any. 0, or an errno. */
static int find(const char *device, size_t named, uint32_t port, uint32_t index,
                struct ibv_gid_entry *entry)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    int error = ENODEV;
    for (int i = 0; devices && devices[i] && error; i++) {
        const char *name = ibv_get_device_name(devices[i]);
        if (named && (strlen(name) != named || strncmp(name, device, named) != 0))
            continue;
        struct ibv_context *context = ibv_open_device(devices[i]);
        if (!context)
            continue;
        error = ibv_query_gid_ex(context, port, index, entry, 0);
        ibv_close_device(context);
    }
    if (devices)
        ibv_free_device_list(devices);
    return error;
}

int verbs_gid_address(const struct options *options, struct sockaddr_storage *into,
                      struct trouble *trouble)
{
    const char *device = options->device ? options->device : "";
    size_t named = strcspn(device, ":");
    int port = device[named] ? atoi(device + named + 1) : 1, index = options->gid_index;
    struct ibv_gid_entry entry = {0};
    int error = find(device, named, (uint32_t)port, (uint32_t)index, &entry);
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    memcpy(&six.sin6_addr, entry.gid.raw, sizeof entry.gid.raw);
    if (error == ENODATA || (!error && IN6_IS_ADDR_UNSPECIFIED(&six.sin6_addr)))
        return troubled(trouble, EXIT_FAULT,
                        "GID index %d is empty: see the device's gids folder in /sys",
                        index);
    if (error)
        return troubled(trouble, EXIT_FAULT, "no device%s%.60s with GID index %d",
                        named ? " " : "", device, index);
    if (!entry.ndev_ifindex) /* InfiniBand's own */
        return troubled(trouble, EXIT_FAULT,
                        "GID index %d is no address of a network interface: choose one "
                        "with --bind",
                        index);
    struct sockaddr_in four = {.sin_family = AF_INET};
    memcpy(&four.sin_addr, entry.gid.raw + 12, 4);
    if (IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr))
        six.sin6_scope_id = entry.ndev_ifindex; /* no address without it */
    if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
        memcpy(into, &four, sizeof four);
    else
        memcpy(into, &six, sizeof six);
    return 0;
}
