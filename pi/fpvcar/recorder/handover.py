"""Lock-free queue from the event loop to the recorder's thread. Neither side waits.

    loop:   put, begin, keep, rest -> queue, bounded in bytes -> take, give_back :thread

Each field is written by one side only. Both ends of a deque are thread-safe.
"""

import math
from collections import deque
from collections.abc import Sequence

from fpvcar.recorder.encoder import BeginCommand, KeepCommand, QueuedMessage, RestCommand
from fpvcar.runtime.units import MB

VIDEO_MOST, ALL_MOST = 6 * MB, 8 * MB
"""Limits of queued bytes: 20 s at 2 Mbit/s."""
Entry = QueuedMessage | BeginCommand | KeepCommand | RestCommand


class Handover:
    """Queue between loop and thread of one recorder."""

    def __init__(self) -> None:
        self.attended_ns: float = math.inf
        """Last time with a driver, CLOCK_MONOTONIC; inf if unknown, treated as now."""
        self._queue: deque[Entry] = deque()
        self._put_bytes = self._keeps_put = 0
        self._given_back_bytes = self._keeps_taken = 0

    @property
    def waiting_bytes(self) -> int:
        """Return the message bytes that are not on the card yet."""
        return self._put_bytes - self._given_back_bytes

    # --- on the loop ---

    def has_room(self, size: int) -> bool:
        """Return whether a picture of `size` bytes fits, leaving space for other messages."""
        return self._put_bytes - self._given_back_bytes + size <= VIDEO_MOST

    def put(self, message: QueuedMessage) -> bool:
        """Queue a message; return False if there is no space."""
        put_bytes = self._put_bytes + message.size
        if put_bytes - self._given_back_bytes > ALL_MOST:
            return False
        self._put_bytes = put_bytes
        self._queue.append(message)
        return True

    def begin(self, command: BeginCommand) -> None:
        """Queue the start of another recording."""
        self._queue.append(command)

    def keep(self, now_ns: int) -> None:
        """Queue a request to keep the last minute; ignored if one is queued already."""
        if self._keeps_put == self._keeps_taken:
            self._keeps_put += 1
            self._queue.append(KeepCommand(now_ns))

    def rest(self, now_ns: int) -> None:
        """Queue the event that the car has stopped."""
        self._queue.append(RestCommand(now_ns))

    # --- in the thread ---

    def take(self) -> list[Entry]:
        """Return and remove all queued entries in order."""
        taken = [self._queue.popleft() for _ in range(len(self._queue))]
        self._keeps_taken += sum(isinstance(entry, KeepCommand) for entry in taken)
        return taken

    def give_back(self, taken: Sequence[Entry]) -> None:
        """Release the queue space of written or lost messages."""
        self._given_back_bytes += sum(
            entry.size for entry in taken if isinstance(entry, QueuedMessage)
        )
