"""Fetch of one car's recordings; pure apart from the given car and store.

    listing -> for each segment: sums -> missing pieces -> pieces, each verified while
                                                           the next one arrives
            -> synced, published, listed -> receipt, while the next segment arrives

After any fault the caller starts a new round, which resumes at the bytes on the disk. A receipt is
sent only after the store has the segment durably.
"""

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

from fpvcar.recordings import names
from fpvcar.recordings.library import checksums
from fpvcar.wire.station import LIST_MOST, Listing, Segment, Sums
from fpvstation.fetch.fair_slots import FairSemaphore, FairSlot
from fpvstation.fetch.incoming import IncomingSegment
from fpvstation.fetch.pipeline import CreateTask, OneInFlight
from fpvstation.store.identity import FULL, StoreError, StoreGone
from fpvstation.store.store import Store
from fpvstation.store.sums_file import StoredSegment

SIZE_MOST = 4 << 30
"""Upper limit of a plausible segment: a minute is 16 MB."""
SEGMENTS_MOST = 200_000
FAULTS_MOST = 3
"""Consecutive failed segments that end a round: the car, the link or the disk is at fault."""
Act = Callable[..., Awaitable[Any]]
"""Runs a function that may block: in a thread; in tests directly."""


class CarFault(Exception):
    """Fault of the car or its connection: try again later."""


class SegmentGone(Exception):
    """Raised when the car no longer has this segment, or has another one of that name."""


FAULTS = (SegmentGone, CarFault, StoreError, OSError)
"""Faults that concern one segment."""


class Pieces(Protocol):
    """Pieces that arrive one after the other until the iterator is closed."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None:
        """Stop the transfer of further pieces."""


class RemoteCar(Protocol):
    """Interface of a car for the station. Every call may raise CarFault."""

    async def listing(self, after: str, everything: bool) -> Listing:
        """Return segments whose names follow `after`: all, or only those without a receipt."""

    async def sums(self, name: str) -> Sums:
        """Return the checksums of a segment. Raises Gone."""

    def pieces(self, name: str, sums: Sums, first: int, last: int) -> Pieces:
        """Yield the pieces `first` to `last`, in order. Raises Gone."""

    async def receipt(self, name: str, sha256: str) -> None:
        """Report a segment as stored. Raises Gone."""


@dataclass
class Round:
    """Result of one round, updated while it runs."""

    stored: list[str] = field(default_factory=list)
    receipts: int = 0
    bad: dict[str, str] = field(default_factory=dict)
    """Segments that arrived incomplete or damaged, with the reason."""
    bytes: int = 0
    waiting: int | None = None
    """Segments on the car that are absent here; None before the car listed them."""
    waiting_bytes: int = 0
    listed: dict[str, int] | None = None
    """Names and sizes of the car's segments: all, or only those without a receipt."""
    card: tuple[int, int] = 0, 0
    """Free bytes and total bytes of the car's card."""
    driven: bool = False
    held: int = 0
    """Segments that are stored here and wait for more replicas before the car may forget."""
    removed: list[str] = field(default_factory=list)
    """Segments that people removed here before their receipt: the car keeps them."""


class Pull:
    """Fetcher of one car into its folder in the store."""

    def __init__(
        self,
        car: RemoteCar,
        store: Store,
        folder: str,
        act: Act,
        turns: FairSemaphore,
        safe: Callable[[StoredSegment], bool] = lambda stored: True,
        begin: CreateTask = asyncio.create_task,
    ) -> None:
        """Set the parts. `safe` returns whether enough replicas exist for the car to forget a
        segment; it may block."""
        self._car, self._store, self._folder, self._act = car, store, folder, act
        self._turns, self._safe, self._begin = turns, safe, begin
        self.round, self._faults = Round(), 0
        self.heard = False
        """Whether the car has answered in this round."""

    async def once(self, everything: bool, last: Collection[str] = ()) -> Round:
        """Fetch all segments that are absent here; `everything`: also those with a receipt.

        The next segment arrives while the previous one is synced and published. A failed segment
        does not stop the round; segments in `last`, which failed before, come after all others.
        Raises CarFault, and the exceptions of the store, if several fail in a row; completed work
        stays.
        """
        self.round, self._faults = Round(), 0
        await self._act(self._store.check)
        removed = await self._act(self._store.removed)
        segments = await self._segments(everything)
        self.round.listed = {one.name: one.size for one in segments}
        self.round.waiting = len(segments)
        self.round.waiting_bytes = sum(one.size for one in segments)
        async with OneInFlight(self._begin) as settling:
            for one in sorted(segments, key=lambda one: one.name in last):
                try:
                    arrival = await self._bring(one, removed)
                except FAULTS as fault:
                    await settling.end()
                    self._note(one, fault)
                else:
                    await settling.then(self._settle, one, arrival)
        return self.round

    async def _settle(self, one: Segment, arrival: IncomingSegment | None) -> None:
        """Publish a segment and send its receipt."""
        try:
            if arrival is not None:
                await self._publish(one, arrival)
                self._faults = 0
        except FAULTS as fault:
            self._note(one, fault)
        else:
            self._note(one)

    def _note(self, one: Segment, fault: Exception | None = None) -> None:
        """Record the result for a segment. Raises the fault if it ends the round."""
        if fault is not None and not isinstance(fault, SegmentGone):
            self.round.bad[one.name] = str(fault)
            self._faults += 1
            if self._faults == FAULTS_MOST or _of_all(fault):
                raise fault
        if one.name not in self.round.bad and self.round.waiting:
            self.round.waiting -= 1
            self.round.waiting_bytes -= one.size

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
        """Return whether a segment needs no transfer and no receipt: it is stored, and the car
        has the receipt or has to wait for it."""
        there = await self._act(self._store.find, self._folder, one.name, one.size)
        if there is None or one.fetched:
            return there is not None
        if await self._act(self._safe, there):
            return False
        self.round.held += 1
        return True

    async def _bring(self, one: Segment, removed: set[str]) -> IncomingSegment | None:
        """Fetch a segment, in turns; return None if nothing has to be published."""
        if await self._here(one):
            return None
        arrival, came = None, False
        while not came:
            async with self._turns.turn() as turn:
                arrival = arrival or await self._arrival(one)
                if arrival.sums.sha256 in removed:  # no receipt without its bytes
                    self.round.removed.append(one.name)
                    return None
                if one.fetched and await self._act(arrival.evicted):
                    return None
                came = await self._fetch(one.name, arrival, turn)
        assert arrival is not None
        bad = await self._act(arrival.missing)
        if bad:
            self.round.bad[one.name] = f"{len(bad)} of its MiB came damaged"
        return None if bad else arrival

    async def _arrival(self, one: Segment) -> IncomingSegment:
        wanted = await self._car.sums(one.name)
        if wanted.size != one.size or not checksums.plausible(wanted):
            raise CarFault(f"{one.name}: its sums are of no file of {one.size} bytes")
        return IncomingSegment(self._store, self._folder, one.name, wanted)

    async def _fetch(self, name: str, arrival: IncomingSegment, turn: FairSlot) -> bool:
        """Request all missing pieces once; return False if the turn ended first."""
        for first, last in _runs(await self._act(arrival.missing)):
            number = first
            async with (
                aclosing(self._car.pieces(name, arrival.sums, first, last)) as pieces,
                OneInFlight(self._begin) as judging,
            ):
                async for data in pieces:
                    if number > last:
                        raise CarFault(f"{name}: it sends more than was asked for")
                    await judging.then(self._take, arrival, number, data)
                    number += 1
                    if turn.over and number <= last:
                        return False
            if number <= last:
                raise CarFault(f"{name}: it ended after {number} of {last + 1} pieces")
        return True

    async def _take(self, arrival: IncomingSegment, number: int, data: bytes) -> None:
        if await self._act(arrival.take, number, data):
            self.round.bytes += len(data)

    async def _publish(self, one: Segment, arrival: IncomingSegment) -> None:
        stored = await self._act(arrival.publish)
        self.round.stored.append(one.name)
        if not await self._act(self._safe, stored):
            self.round.held += 1
            return
        await self._act(self._store.check)
        await self._car.receipt(one.name, stored.sha256)
        self.round.receipts += 1


def _of_all(fault: Exception) -> bool:
    """Return whether every other segment would fail, too."""
    closed = isinstance(fault, OSError) and fault.errno in (*FULL, errno.EROFS)
    return closed or isinstance(fault, StoreGone)


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Return runs of consecutive numbers as (first, last)."""
    found: list[tuple[int, int]] = []
    for one in numbers:
        if found and found[-1][1] == one - 1:
            found[-1] = found[-1][0], one
        else:
            found.append((one, one))
    return found
