"""Timers that go off together: who sleeps wakes the processor once for all of them."""

import asyncio


async def aligned_sleep(period_s: float) -> None:
    """Sleeps until the loop's clock is at the next multiple of `period_s`."""
    await asyncio.sleep(period_s - asyncio.get_running_loop().time() % period_s)
