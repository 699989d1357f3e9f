"""Checksums of a sealed file, reckoned once and kept beside it: NAME.mcap.sums.

The recorder adds up what it writes, so that a card which bends a file later is found
out. A file without sums (salvaged, kept, or recorded by an older version) is read once.
"""

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from fpvcar.recordings.names import SUMS
from fpvcar.runtime import files
from fpvcar.runtime.units import MIB
from fpvcar.wire.station import SHA256, Sums

PIECE = MIB
READ_BYTES = 256 * 1024


class Summing:
    """Adds up a file as its bytes come."""

    def __init__(self) -> None:
        self.size = 0
        self._whole, self._piece = hashlib.sha256(), hashlib.sha256()
        self._pieces: list[str] = []

    def add(self, data: bytes) -> None:
        """Takes the next bytes."""
        left = memoryview(data)
        self._whole.update(left)
        while left:
            room = PIECE - self.size % PIECE
            some, left = left[:room], left[room:]
            self._piece.update(some)
            self.size += len(some)
            if self.size % PIECE == 0:
                self._pieces.append(self._piece.hexdigest())
                self._piece = hashlib.sha256()

    def sums(self) -> Sums:
        """What came so far."""
        last = [self._piece.hexdigest()] if self.size % PIECE else []
        return Sums(self.size, self._whole.hexdigest(), self._pieces + last)


def pieces_of(size: int) -> int:
    """How many pieces a file of that size has."""
    return -(-size // PIECE)


def start_of(number: int) -> int:
    """Where a piece of that number begins."""
    return number * PIECE


def encoded(sums: Sums) -> bytes:
    """As it is kept."""
    return msgspec.json.encode(sums)


def plausible(sums: Sums) -> bool:
    """Could these be sums of any file?"""
    return (
        sums.size >= 0
        and len(sums.pieces) == pieces_of(sums.size)
        and all(SHA256.fullmatch(one) for one in (sums.sha256, *sums.pieces))
    )


def read(path: Path, rest: Callable[[], None] = lambda: None) -> Sums:
    """Adds up a file; `rest` is called between pieces. Raises OSError."""
    summing = Summing()
    with path.open("rb") as file:
        while data := file.read(READ_BYTES):
            summing.add(data)
            rest()
    return summing.sums()


def sums_of(path: Path, rest: Callable[[], None] = lambda: None) -> Sums:
    """What is kept of a sealed file, else what is read of it now, and then kept.

    Raises OSError.
    """
    kept = path.with_name(path.name + SUMS)
    size = path.stat().st_size
    with contextlib.suppress(OSError, ValueError, msgspec.DecodeError, RecursionError):
        found = msgspec.json.decode(kept.read_bytes(), type=Sums)
        if found.size == size and plausible(found):
            return found
    made = read(path, rest)
    with contextlib.suppress(OSError):  # a full card: they are reckoned again
        files.write_whole(kept, [encoded(made)])
    return made
