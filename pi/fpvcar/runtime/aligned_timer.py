"""Aligned timers: all sleepers wake at the same instant, so the processor wakes once."""

import asyncio


async def aligned_sleep(period_s: float) -> None:
    """Sleep until the loop's clock is at the next multiple of `period_s`."""
    await asyncio.sleep(period_s - asyncio.get_running_loop().time() % period_s)
