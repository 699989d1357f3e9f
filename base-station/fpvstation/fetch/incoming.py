"""A segment on its way from a car into the store, judged while it comes.

What comes in one go is hashed as a whole: only if that is wrong is each MiB compared,
to ask again for those that bent. What goes on where another try ended is compared MiB
by MiB, and read again at the end.
"""

import hashlib

from fpvcar.wire.station import Sums
from fpvstation.store.store import Store
from fpvstation.store.sums_file import Stored


class Arrival:
    """One segment. Every call may block, and raise OSError and StoreGone."""

    def __init__(self, store: Store, car: str, name: str, sums: Sums) -> None:
        self._store, self._mine, self.sums = store, (car, name, sums), sums
        self._left: list[int] | None = None
        self._whole = hashlib.sha256()
        self._in_one_go = self._right = False

    def evicted(self) -> bool:
        """Return True if a bound took it out of the store."""
        car, name, sums = self._mine
        return self._store.evicted(car, name, sums.sha256)

    def missing(self) -> list[int]:
        """Which pieces are not here yet, or are not good: to be taken in this order."""
        if self._left is None:
            self._left = self._store.missing(*self._mine)
            self._in_one_go = len(self._left) == len(self.sums.pieces)
        if self._in_one_go and not self._left:
            self._right = self._whole.hexdigest() == self.sums.sha256
            if not self._right:
                self._left, self._in_one_go = self._store.missing(*self._mine), False
        return list(self._left)

    def take(self, number: int, data: bytes) -> bool:
        """Keeps a piece; False: it is not good. `missing` was asked before."""
        assert self._left is not None
        if self._in_one_go:
            self._whole.update(data)
        elif hashlib.sha256(data).hexdigest() != self.sums.pieces[number]:
            return False
        anew = self._in_one_go and number == 0
        self._store.write(*self._mine, number, data, anew)
        self._left.remove(number)
        return True

    def publish(self) -> Stored:
        """Gives it its place and its line, when nothing is missing. Raises StoreError.

        To read again what was hashed on its way would ask the page cache, not the disk.
        """
        return self._store.publish(*self._mine, read_back=not self._right)
