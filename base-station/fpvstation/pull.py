"""Brings home what one car has: pure but for the car and the store that it is given.

    listing -> for each segment: sums -> what is missing -> pieces, each judged
            -> published, synced, listed -> receipt

Whatever ends it, it is called again, and goes on where the bytes on the disk end. A
receipt is said only after the store has the segment for good.
"""

import errno
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

from fpvcar.recordings import names, sums
from fpvcar.wire.station import LIST_MOST, Listing, Segment, Sums
from fpvstation.identity import StoreError, StoreGone
from fpvstation.store import Store, Stored
from fpvstation.turns import Turn, Turns

SIZE_MOST = 4 << 30
"""A minute is 16 MB: what says that it is larger than this lies."""
SEGMENTS_MOST = 200_000
FAULTS_MOST = 3
"""So many segments in a row that fail: it is the car, the link or the disk."""
Act = Callable[..., Awaitable[Any]]
"""Calls a function that may block: in a thread; in tests at once."""


class CarFault(Exception):
    """The car, or the way to it, fails: try again later."""


class Gone(Exception):
    """The car has this segment no more, or another one of that name."""


class Pieces(Protocol):
    """They come one after the other, until somebody closes them."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None:
        """No more of them is wanted."""


class RemoteCar(Protocol):
    """A car as a station asks it. Every call may raise CarFault."""

    async def listing(self, after: str, everything: bool) -> Listing:
        """Segments whose names are after `after`: all, or those not fetched."""

    async def sums(self, name: str) -> Sums:
        """Checksums of a segment. Raises Gone."""

    def pieces(self, name: str, sums: Sums, first: int, last: int) -> Pieces:
        """The pieces `first` to `last`, in order. Raises Gone."""

    async def receipt(self, name: str, sha256: str) -> None:
        """Says that it is stored. Raises Gone."""


@dataclass
class Round:
    """What came of one round, as it goes on."""

    stored: list[str] = field(default_factory=list)
    receipts: int = 0
    bad: dict[str, str] = field(default_factory=dict)
    """Segments that did not come whole, and why."""
    bytes: int = 0
    waiting: int | None = None
    """Segments that the car has and we have not; None before it listed them."""
    waiting_bytes: int = 0
    card: tuple[int, int] = 0, 0
    """Bytes that are free on the car's card, and in all."""
    driven: bool = False
    held: int = 0
    """Segments that are here and wait for more copies before the car may forget."""
    removed: list[str] = field(default_factory=list)
    """Segments that people removed here before their receipt: the car keeps them."""


class Pull:
    """One car, and its folder in the store."""

    def __init__(
        self, car: RemoteCar, store: Store, folder: str, act: Act, turns: Turns,
        safe: Callable[[Stored], bool] = lambda stored: True,
    ) -> None:  # fmt: skip
        """`safe`: are there so many copies that the car may forget it? It may block."""
        self._car, self._store, self._folder, self._act = car, store, folder, act
        self._turns, self._safe = turns, safe
        self.round = Round()
        self.heard = False
        """Has the car answered?"""

    async def once(self, everything: bool, last: Collection[str] = ()) -> Round:
        """Fetches all that is not here; `everything`: also what has a receipt.

        A segment that fails keeps nobody from the next one; those of `last`, which
        failed before, come after all others. Raises CarFault, and what the store
        raises, if several fail in a row; what was done until then stays.
        """
        self.round = Round()
        await self._act(self._store.check)
        removed = await self._act(self._store.removed)
        segments = await self._segments(everything)
        waiting = self.round.waiting = len(segments)
        self.round.waiting_bytes = sum(one.size for one in segments)
        faults = 0
        for one in sorted(segments, key=lambda one: one.name in last):
            try:
                if not await self._here(one):
                    await self._in_turns(one, removed)
                    faults = 0
            except Gone:
                pass
            except (CarFault, StoreError, OSError) as fault:
                self.round.bad[one.name] = str(fault)
                faults += 1
                if faults == FAULTS_MOST or _of_all(fault):
                    raise
            if one.name not in self.round.bad:
                waiting = self.round.waiting = waiting - 1
                self.round.waiting_bytes -= one.size
        return self.round

    async def _segments(self, everything: bool) -> list[Segment]:
        found: list[Segment] = []
        after, more = "", True
        while more:
            page = await self._car.listing(after, everything)
            self.heard = True
            if len(page.segments) > LIST_MOST or len(found) > SEGMENTS_MOST:
                raise CarFault(f"it lists more than {SEGMENTS_MOST} segments")
            for one in page.segments:
                name = names.parse(one.name)
                sealed = name is not None and name.suffix == names.SEALED
                if not sealed or not 0 <= one.size <= SIZE_MOST or one.name <= after:
                    raise CarFault(
                        f"it lists {one.name[:60]!r} of {one.size} bytes after "
                        f"{after!r}: no segment"
                    )
                after = one.name
            found += page.segments
            self.round.driven, self.round.card = page.driven, (page.free, page.total)
            more = page.more and bool(page.segments)
        return found

    async def _here(self, one: Segment) -> bool:
        """Is it stored, and does the car know that, or has to wait for it?"""
        there = await self._act(self._store.find, self._folder, one.name, one.size)
        if there is None or one.fetched:
            return there is not None
        if await self._act(self._safe, there):
            return False
        self.round.held += 1
        return True

    async def _in_turns(self, one: Segment, removed: set[str]) -> None:
        done = False
        while not done:
            async with self._turns.turn() as turn:
                done = await self._segment(one, removed, turn)

    async def _segment(self, one: Segment, removed: set[str], turn: Turn) -> bool:
        """False: the turn was over first."""
        wanted = await self._car.sums(one.name)
        if wanted.size != one.size or not sums.plausible(wanted):
            raise CarFault(f"{one.name}: its sums are of no file of {one.size} bytes")
        mine = (self._folder, one.name, wanted)
        if wanted.sha256 in removed:  # by people: no receipt without its bytes
            self.round.removed.append(one.name)
            return True
        if not await self._fetch(one.name, wanted, turn):
            return one.name in self.round.bad
        stored = await self._act(self._store.publish, *mine)
        self.round.stored.append(one.name)
        if not await self._act(self._safe, stored):
            self.round.held += 1
            return True
        await self._act(self._store.check)
        await self._car.receipt(one.name, wanted.sha256)
        self.round.receipts += 1
        return True

    async def _fetch(self, name: str, wanted: Sums, turn: Turn) -> bool:
        """Fetches what is missing; is all of it here, and good?"""
        missing = await self._act(self._store.missing, self._folder, name, wanted)
        bad = 0
        for first, last in _runs(missing):
            number = first
            async with aclosing(self._car.pieces(name, wanted, first, last)) as pieces:
                async for data in pieces:
                    if number > last:
                        raise CarFault(f"{name}: it sends more than was asked for")
                    bad += not await self._piece(name, wanted, number, data)
                    number += 1
                    if turn.over and number <= last:
                        return False
            if number <= last:
                raise CarFault(f"{name}: it ended after {number} of {last + 1} pieces")
        if bad:
            self.round.bad[name] = f"{bad} of its MiB came damaged"
        return not bad

    async def _piece(self, name: str, wanted: Sums, number: int, data: bytes) -> bool:
        """Keeps a piece, if it is good."""
        if hashlib.sha256(data).hexdigest() != wanted.pieces[number]:
            return False
        await self._act(self._store.write, self._folder, name, wanted, number, data)
        self.round.bytes += len(data)
        return True


def _of_all(fault: Exception) -> bool:
    """Will every other segment fail, too?"""
    full = isinstance(fault, OSError) and fault.errno == errno.ENOSPC
    return full or isinstance(fault, StoreGone)


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Numbers that follow each other, as (first, last)."""
    found: list[tuple[int, int]] = []
    for one in numbers:
        if found and found[-1][1] == one - 1:
            found[-1] = found[-1][0], one
        else:
            found.append((one, one))
    return found
