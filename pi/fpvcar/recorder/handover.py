"""Hands over from the event loop to the recorder's thread: no lock, nobody waits.

    loop:   put, begin, keep, rest -> queue, bounded in bytes -> take, give_back :thread

Each field is written by one side only; both ends of a deque are safe.
"""

import math
from collections import deque
from collections.abc import Sequence

from fpvcar.recorder.encoder import Begin, Keep, Noted, Rest
from fpvcar.runtime.units import MB

VIDEO_MOST, ALL_MOST = 6 * MB, 8 * MB
"""Bytes that may wait for the card: 20 s at 2 Mbit/s."""
Entry = Noted | Begin | Keep | Rest


class Handover:
    """The queue of one recorder."""

    def __init__(self) -> None:
        self.attended_ns: float = math.inf
        """When somebody last had the wheel, CLOCK_MONOTONIC; inf: unknown, so now."""
        self._queue: deque[Entry] = deque()
        self._put_bytes = self._keeps_put = 0
        self._given_back_bytes = self._keeps_taken = 0

    @property
    def waiting_bytes(self) -> int:
        """What is not on the card yet, by the sizes of its messages."""
        return self._put_bytes - self._given_back_bytes

    # --- on the loop ---

    def has_room(self, size: int) -> bool:
        """May a picture of so many bytes be put? It leaves room for all else."""
        return self.waiting_bytes + size <= VIDEO_MOST

    def put(self, one: Noted) -> bool:
        """Queues a message, if there is room."""
        put_bytes = self._put_bytes + one.size
        if put_bytes - self._given_back_bytes > ALL_MOST:
            return False
        self._put_bytes = put_bytes
        self._queue.append(one)
        return True

    def begin(self, one: Begin) -> None:
        """Queues that what follows belongs to another recording."""
        self._queue.append(one)

    def keep(self, now_ns: int) -> None:
        """Queues that the last minute stays; a second push while the first one waits
        adds nothing."""
        if self._keeps_put == self._keeps_taken:
            self._keeps_put += 1
            self._queue.append(Keep(now_ns))

    def rest(self, now_ns: int) -> None:
        """Queues that the car has come to rest."""
        self._queue.append(Rest(now_ns))

    # --- in the thread ---

    def take(self) -> list[Entry]:
        """Takes all that waits now, in order."""
        taken = [self._queue.popleft() for _ in range(len(self._queue))]
        self._keeps_taken += sum(isinstance(one, Keep) for one in taken)
        return taken

    def give_back(self, taken: Sequence[Entry]) -> None:
        """Gives back the room of what is written, or lost."""
        self._given_back_bytes += sum(one.size for one in taken if isinstance(one, Noted))
