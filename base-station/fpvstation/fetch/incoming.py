"""Segment in transfer from a car into the store, verified during the transfer.

A segment that arrives in one go is hashed as a whole. Only if that checksum is wrong, each MiB is
compared, to fetch the damaged ones again. A transfer that resumes an earlier one is compared MiB by
MiB, and read again at the end.
"""

import hashlib

from fpvcar.wire.station import Sums
from fpvstation.store.store import Store
from fpvstation.store.sums_file import StoredSegment


class IncomingSegment:
    """Transfer of one segment. Every call may block, and raise OSError and StoreGone."""

    def __init__(self, store: Store, car: str, name: str, sums: Sums) -> None:
        self._store, self._key, self.sums = store, (car, name, sums), sums
        self._missing: list[int] | None = None
        self._hash = hashlib.sha256()
        self._in_one_go = self._hash_matches = False

    def evicted(self) -> bool:
        """Return whether a bound evicted this segment from the store."""
        car, name, sums = self._key
        return self._store.evicted(car, name, sums.sha256)

    def is_archived(self) -> bool:
        """Return whether an archive has this segment, recently verified."""
        car, name, sums = self._key
        return self._store.is_archived(car, name, sums.sha256)

    def missing(self) -> list[int]:
        """Return the numbers of absent or damaged pieces, in the order that `write_piece` needs."""
        if self._missing is None:
            self._missing = self._store.missing(*self._key)
            self._in_one_go = len(self._missing) == len(self.sums.pieces)
        if self._in_one_go and not self._missing:
            self._hash_matches = self._hash.hexdigest() == self.sums.sha256
            if not self._hash_matches:
                self._missing, self._in_one_go = self._store.missing(*self._key), False
        return list(self._missing)

    def write_piece(self, number: int, data: bytes) -> bool:
        """Store a piece; return False if it is damaged. `missing` must have been called before."""
        assert self._missing is not None
        if self._in_one_go:
            self._hash.update(data)
        elif hashlib.sha256(data).hexdigest() != self.sums.pieces[number]:
            return False
        anew = self._in_one_go and number == 0
        self._store.write(*self._key, number, data, anew)
        self._missing.remove(number)
        return True

    def publish(self) -> StoredSegment:
        """Publish the complete segment with its line in the list. Raises StationError.

        Bytes that were hashed on arrival are not read back: that would test the page cache, not the
        disk.
        """
        return self._store.publish(*self._key, read_back=not self._hash_matches)
