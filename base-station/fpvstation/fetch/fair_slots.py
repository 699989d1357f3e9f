"""A few cars at once, in turns: a slow one does not keep its place from the others."""

import asyncio
import time
from collections.abc import Callable
from types import TracebackType

AT_ONCE = 4
TURN_S = 30.0


class Turns:
    """Places that are taken in the order of asking."""

    def __init__(
        self, clock_s: Callable[[], float] = time.monotonic, places: int = AT_ONCE
    ) -> None:
        self.clock_s, self.places = clock_s, asyncio.Semaphore(places)
        self.waiting = 0

    def turn(self) -> "Turn":
        """For `async with`: waits for a place."""
        return Turn(self)


class Turn:
    """A place; after a while the next one who waits should have it."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    async def __aenter__(self) -> "Turn":
        self._turns.waiting += 1
        try:
            await self._turns.places.acquire()
        finally:
            self._turns.waiting -= 1
        self._since_s = self._turns.clock_s()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._turns.places.release()

    @property
    def over(self) -> bool:
        """Should the next one have it? What came is kept, and goes on later."""
        held_s = self._turns.clock_s() - self._since_s
        return self._turns.waiting > 0 and held_s > TURN_S
