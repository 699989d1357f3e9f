"""Limit on the answers held whole in memory, against clients that read slowly."""

import asyncio
import contextlib
from collections.abc import Callable

from fpvcar.runtime.clock import Clock

AT_ONCE_MAX = 4
"""Most answers held whole at the same time."""
SLOW_S = 5.0
"""Time for which a client may hold up its answer while another one waits for a slot."""


class Slot:
    """Answer held whole, and the time spent waiting for its client."""

    def __init__(self, cut: Callable[[], object]) -> None:
        """Create a slot; `cut` ends the connection."""
        self.cut = cut
        self._blocked_s = 0.0
        self._since_s: float | None = None

    def blocked(self, since_s: float) -> None:
        """Note the start of writing a piece."""
        self._since_s = since_s

    def written(self, now_s: float) -> None:
        """Note the end of writing a piece."""
        self._blocked_s, self._since_s = self.blocked_s(now_s), None

    def blocked_s(self, now_s: float) -> float:
        """Return the seconds spent waiting for this client, over all pieces."""
        since_s = now_s if self._since_s is None else self._since_s
        return self._blocked_s + now_s - since_s


class Slots:
    """Limit on the answers held whole, so that they fit into memory.

    Slow readers do not block other clients: while one waits for a slot, the reader that has held up
    its answer longest is cut off, after `slow_s`.
    """

    def __init__(self, clock_s: Clock, most: int = AT_ONCE_MAX, slow_s: float = SLOW_S) -> None:
        self._clock_s, self._most, self._slow_s = clock_s, most, slow_s
        self._held: list[Slot] = []
        self._freed = asyncio.Event()

    async def enter(self, slot: Slot) -> None:
        """Wait for a free slot, and take it."""
        while len(self._held) >= self._most:
            now_s = self._clock_s()
            slowest = max(self._held, key=lambda held: held.blocked_s(now_s))
            left_s = self._slow_s - slowest.blocked_s(now_s)
            if left_s <= 0.0:
                self.leave(slowest)
                slowest.cut()
                break
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._freed.wait()
        self._held.append(slot)

    def leave(self, slot: Slot) -> None:
        """Release a slot if it is still held."""
        if slot in self._held:
            self._held.remove(slot)
            self._freed.set()
            self._freed = asyncio.Event()
