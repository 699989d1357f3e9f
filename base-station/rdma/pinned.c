/* How much memory may be pinned for RDMA: see pinned.h. */
#include "pinned.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SPARE_RECEIVES = 8,
    CREDITS_LEAST = 4,
    CHUNK_GOOD = 128 << 10, /* what is smaller costs more than fewer in flight do */
    PAGE = 4096,
    OTHERS = 256 << 10, /* queues, small records */
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

static uint64_t need(const struct hello *hello)
{
    uint64_t slot = RECORD_BYTES + (uint64_t)hello->chunk + SEAL_BYTES;
    slot = (slot + PAGE - 1) / PAGE * PAGE;
    return slot * (hello->credits + SPARE_RECEIVES) + OTHERS;
}

static uint32_t halved(uint32_t value, uint32_t least)
{
    return value / 2 > least ? value / 2 : least;
}

int pinned_fit(struct hello *hello, uint64_t limit_bytes)
{
    struct hello wanted = *hello;
    while (need(hello) > limit_bytes && hello->chunk > CHUNK_GOOD)
        hello->chunk = halved(hello->chunk, CHUNK_GOOD);
    while (need(hello) > limit_bytes && hello->credits > CREDITS_LEAST)
        hello->credits = halved(hello->credits, CREDITS_LEAST);
    while (need(hello) > limit_bytes && hello->chunk > CHUNK_LEAST)
        hello->chunk = halved(hello->chunk, CHUNK_LEAST);
    return wanted.chunk != hello->chunk || wanted.credits != hello->credits;
}
