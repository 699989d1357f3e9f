/* How much memory may be pinned for RDMA: see pinned.h. */
#include "pinned.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring.h"

enum {
    SPARE_RECEIVES = 8,
    CREDITS_GOOD = 4,
    CHUNK_GOOD = 128 << 10, /* what is smaller costs more than fewer in flight do */
    OTHERS = 24 << 10,      /* small records, door bells, queues of a few ... */
    EACH = 256,             /* ... and what each credit more adds to the queues */
};

static int may_pin_all(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2] = {{0}};
    return syscall(SYS_capget, &header, sets) == 0 &&
           sets[0].effective & 1u << CAP_IPC_LOCK;
}

uint64_t pinned_limit(void)
{
    struct rlimit limit;
    if (may_pin_all() || getrlimit(RLIMIT_MEMLOCK, &limit) < 0 ||
        limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}

uint64_t pinned_need(const struct hello *hello)
{
    uint64_t spare = hello->role == ROLE_RECEIVER ? SPARE_RECEIVES : 0;
    uint64_t credits = hello->credits;
    return ring_slot_bytes(hello->chunk) * (credits + spare) + credits * EACH + OTHERS;
}

static uint32_t halved(uint32_t value, uint32_t least)
{
    return value / 2 > least ? value / 2 : least;
}

int pinned_fit(struct hello *hello, uint64_t limit_bytes)
{
    struct hello wanted = *hello;
    while (pinned_need(hello) > limit_bytes && hello->chunk > CHUNK_GOOD)
        hello->chunk = halved(hello->chunk, CHUNK_GOOD);
    while (pinned_need(hello) > limit_bytes && hello->credits > CREDITS_GOOD)
        hello->credits = halved(hello->credits, CREDITS_GOOD);
    while (pinned_need(hello) > limit_bytes && hello->chunk > CHUNK_LEAST)
        hello->chunk = halved(hello->chunk, CHUNK_LEAST);
    while (pinned_need(hello) > limit_bytes && hello->credits > 1)
        hello->credits--;
    if (pinned_need(hello) > limit_bytes)
        return -1;
    return wanted.chunk != hello->chunk || wanted.credits != hello->credits;
}
