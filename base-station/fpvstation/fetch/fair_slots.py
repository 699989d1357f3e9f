"""Fair semaphore for a few cars at once: a slow car passes its place on after its turn."""

import asyncio
import time

from fpvcar.runtime.clock import Clock

AT_ONCE = 4
TURN_S = 30.0


class FairSemaphore:
    """Places that are granted in the order of the requests."""

    def __init__(self, clock_s: Clock = time.monotonic, places: int = AT_ONCE) -> None:
        self.clock_s, self.places = clock_s, asyncio.Semaphore(places)
        self.waiting = 0

    def slot(self) -> "FairSlot":
        """Return a context for `async with` that waits for a place."""
        return FairSlot(self)


class FairSlot:
    """Place that should go to the next waiting car after TURN_S."""

    def __init__(self, semaphore: FairSemaphore) -> None:
        self._semaphore = semaphore

    async def __aenter__(self) -> "FairSlot":
        self._semaphore.waiting += 1
        try:
            await self._semaphore.places.acquire()
        finally:
            self._semaphore.waiting -= 1
        self._granted_s = self._semaphore.clock_s()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._semaphore.places.release()

    @property
    def expired(self) -> bool:
        """Whether the next car should get the place. Received data is kept, and the fetch
        resumes later."""
        held_s = self._semaphore.clock_s() - self._granted_s
        return self._semaphore.waiting > 0 and held_s > TURN_S
