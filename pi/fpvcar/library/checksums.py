"""Checksums of a sealed file, computed once and stored beside it as NAME.mcap.sums.

The recorder hashes the data while it writes it, so later corruption by the card is detected. A file
without checksums (salvaged, kept, or recorded by an older version) is read once.
"""

import contextlib
import hashlib
from pathlib import Path

import msgspec

from fpvcar.recordings.names import SUMS
from fpvcar.runtime import files
from fpvcar.runtime.units import MIB
from fpvcar.runtime.workers import Rest, no_rest
from fpvcar.wire.station import SHA256, Sums

PIECE = MIB
READ_BYTES = 256 * 1024


class Checksummer:
    """Incremental SHA-256 of a file and of each of its pieces."""

    def __init__(self) -> None:
        self.size = 0
        self._whole, self._piece = hashlib.sha256(), hashlib.sha256()
        self._pieces: list[str] = []

    def add(self, data: bytes) -> None:
        """Add the next bytes of the file."""
        rest = memoryview(data)
        self._whole.update(rest)
        while rest:
            room = PIECE - self.size % PIECE
            part, rest = rest[:room], rest[room:]
            self._piece.update(part)
            self.size += len(part)
            if self.size % PIECE == 0:
                self._pieces.append(self._piece.hexdigest())
                self._piece = hashlib.sha256()

    def sums(self) -> Sums:
        """Return the checksums of all bytes added so far."""
        last = [self._piece.hexdigest()] if self.size % PIECE else []
        return Sums(self.size, self._whole.hexdigest(), self._pieces + last)


def pieces_of(size: int) -> int:
    """Return the number of pieces in a file of this size."""
    return -(-size // PIECE)


def start_of(number: int) -> int:
    """Return the offset of piece `number` in bytes."""
    return number * PIECE


def encoded(sums: Sums) -> bytes:
    """Encode checksums as JSON for their file."""
    return msgspec.json.encode(sums)


def plausible(sums: Sums) -> bool:
    """Return whether size, number of pieces and digest format are consistent."""
    return (
        sums.size >= 0
        and len(sums.pieces) == pieces_of(sums.size)
        and all(SHA256.fullmatch(digest) for digest in (sums.sha256, *sums.pieces))
    )


def read(path: Path, rest: Rest = no_rest) -> Sums:
    """Compute the checksums of a file. Calls `rest` between reads. Raises OSError."""
    summing = Checksummer()
    with path.open("rb") as file:
        while data := file.read(READ_BYTES):
            summing.add(data)
            rest()
    return summing.sums()


def sums_of(path: Path, rest: Rest = no_rest) -> Sums:
    """Return the stored checksums of a sealed file; if absent or invalid, compute and store them.

    Raises OSError.
    """
    sums_path = path.with_name(path.name + SUMS)
    size = path.stat().st_size
    with contextlib.suppress(OSError, ValueError, msgspec.DecodeError, RecursionError):
        stored = msgspec.json.decode(sums_path.read_bytes(), type=Sums)
        if stored.size == size and plausible(stored):
            return stored
    computed = read(path, rest)
    with contextlib.suppress(OSError):  # the card is full: computed again next time
        files.write_whole(sums_path, [encoded(computed)])
    return computed
