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

from fpvcar.library import checksums
from fpvcar.recordings import names
from fpvcar.runtime.texts import Phrase, Text, fault_text
from fpvcar.wire.station import LIST_MOST, Listing, Segment, Sums
from fpvstation.errors import StationError
from fpvstation.fetch.fair_slots import FairSemaphore, FairSlot
from fpvstation.fetch.incoming import IncomingSegment
from fpvstation.fetch.pipeline import CreateTask, OneInFlight
from fpvstation.store.archived import SessionArchived
from fpvstation.store.identity import FULL, StoreGone
from fpvstation.store.store import Store
from fpvstation.store.sums_file import StoredSegment

STATION_CUT = Phrase("station_cut", "{name}: transfer ended after {count} of {total} pieces")

SIZE_MOST = 4 << 30
"""Upper limit of a plausible segment: a minute is 16 MB."""
SEGMENTS_MOST = 200_000
FAULTS_MOST = 3
"""Consecutive failed segments that end a round: the car, the link or the disk is at fault."""
Act = Callable[..., Awaitable[Any]]
"""Runs a function that may block: in a thread; in tests directly."""


class CarFault(Exception):
    """Fault of the car or its connection: try again later."""


def invalid(reason: str) -> CarFault:
    """Return the fault of a car that answers nonsense."""
    return CarFault(Text("station_invalid", "invalid answer of the car: {reason}", reason=reason))


class SegmentGone(Exception):
    """Raised when the car no longer has this segment, or has another one of that name."""


FAULTS = (SegmentGone, CarFault, StationError, OSError)
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
        """Return the checksums of a segment. Raises SegmentGone."""

    def pieces(self, name: str, sums: Sums, first: int, last: int) -> Pieces:
        """Yield the pieces `first` to `last`, in order. Raises SegmentGone."""

    async def receipt(self, name: str, sha256: str) -> None:
        """Report a segment as stored. Raises SegmentGone."""


@dataclass
class Round:
    """Result of one round, updated while it runs."""

    stored: list[str] = field(default_factory=list)
    receipts: int = 0
    bad: dict[str, Text] = field(default_factory=dict)
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
    late: dict[str, Text] = field(default_factory=dict)
    """Segments of archived sessions, with the next step: the car keeps them."""


class Pull:
    """Fetcher of one car into its folder in the store."""

    def __init__(
        self,
        car: RemoteCar,
        store: Store,
        folder: str,
        act: Act,
        semaphore: FairSemaphore,
        safe: Callable[[StoredSegment], bool] = lambda stored: True,
        create_task: CreateTask = asyncio.create_task,
    ) -> None:
        """Set the parts. `safe` returns whether enough replicas exist for the car to forget a
        segment; it may block."""
        self._car, self._store, self._folder, self._act = car, store, folder, act
        self._semaphore, self._safe, self._create_task = semaphore, safe, create_task
        self.round, self._faults = Round(), 0
        self.answered = False
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
        self.round.listed = {segment.name: segment.size for segment in segments}
        self.round.waiting = len(segments)
        self.round.waiting_bytes = sum(segment.size for segment in segments)
        async with OneInFlight(self._create_task) as publishing:
            for segment in sorted(segments, key=lambda segment: segment.name in last):
                try:
                    incoming = await self._fetch_segment(segment, removed)
                except FAULTS as fault:
                    await publishing.wait()
                    self._record_result(segment, fault)
                else:
                    await publishing.start(self._settle, segment, incoming)
        return self.round

    async def _settle(self, segment: Segment, incoming: IncomingSegment | None) -> None:
        """Publish a segment and send its receipt."""
        try:
            if incoming is not None:
                await self._publish(segment, incoming)
                self._faults = 0
        except FAULTS as fault:
            self._record_result(segment, fault)
        else:
            self._record_result(segment)

    def _record_result(self, segment: Segment, fault: Exception | None = None) -> None:
        """Record the result for a segment. Raises the fault if it ends the round."""
        if isinstance(fault, SessionArchived):
            self.round.late[segment.name] = fault_text(fault)
        elif fault is not None and not isinstance(fault, SegmentGone):
            self.round.bad[segment.name] = fault_text(fault)
            self._faults += 1
            if self._faults == FAULTS_MOST or _affects_all(fault):
                raise fault
        if segment.name not in self.round.bad and self.round.waiting:
            self.round.waiting -= 1
            self.round.waiting_bytes -= segment.size

    async def _segments(self, everything: bool) -> list[Segment]:
        segments: list[Segment] = []
        after, more = "", True
        while more:
            page = await self._car.listing(after, everything)
            self.answered = True
            if len(page.segments) > LIST_MOST or len(segments) > SEGMENTS_MOST:
                raise invalid(f"more than {SEGMENTS_MOST} segments")
            for segment in page.segments:
                name = names.parse(segment.name)
                sealed = name is not None and name.suffix == names.SEALED
                if not sealed or not 0 <= segment.size <= SIZE_MOST or segment.name <= after:
                    raise invalid(
                        f"{segment.name[:60]!r} of {segment.size} bytes after {after!r}: "
                        "not a segment"
                    )
                after = segment.name
            segments += page.segments
            self.round.driven, self.round.card = page.driven, (page.free, page.total)
            more = page.more and bool(page.segments)
        return segments

    async def _is_settled(self, segment: Segment) -> bool:
        """Return whether a segment needs no transfer and no receipt: it is stored, and the car
        has the receipt or has to wait for it."""
        stored = await self._act(self._store.find, self._folder, segment.name, segment.size)
        if stored is None or segment.fetched:
            return stored is not None
        if await self._act(self._safe, stored):
            return False
        self.round.held += 1
        return True

    async def _fetch_segment(self, segment: Segment, removed: set[str]) -> IncomingSegment | None:
        """Fetch a segment, in turns; return None if nothing has to be published."""
        if await self._is_settled(segment):
            return None
        incoming, complete = None, False
        while not complete:
            async with self._semaphore.slot() as slot:
                incoming = incoming or await self._open_segment(segment)
                if incoming.sums.sha256 in removed:  # no receipt without its bytes
                    self.round.removed.append(segment.name)
                    return None
                if segment.fetched and await self._act(incoming.evicted):
                    return None
                if not segment.fetched and await self._act(incoming.is_archived):
                    await self._send_receipt(segment.name, incoming.sums.sha256)
                    return None
                complete = await self._request_pieces(segment.name, incoming, slot)
        assert incoming is not None
        damaged = await self._act(incoming.missing)
        if damaged:
            self.round.bad[segment.name] = Text(
                "station_damaged", "{count} MiB arrived damaged", count=len(damaged)
            )
        return None if damaged else incoming

    async def _open_segment(self, segment: Segment) -> IncomingSegment:
        sums = await self._car.sums(segment.name)
        if sums.size != segment.size or not checksums.plausible(sums):
            raise invalid(f"{segment.name}: checksums do not fit a file of {segment.size} bytes")
        return IncomingSegment(self._store, self._folder, segment.name, sums)

    async def _request_pieces(self, name: str, incoming: IncomingSegment, slot: FairSlot) -> bool:
        """Request all missing pieces once; return False if the turn ended first."""
        for first, last in _runs(await self._act(incoming.missing)):
            number = first
            async with (
                aclosing(self._car.pieces(name, incoming.sums, first, last)) as pieces,
                OneInFlight(self._create_task) as writing,
            ):
                async for data in pieces:
                    if number > last:
                        raise invalid(f"{name}: more pieces than requested")
                    await writing.start(self._write_piece, incoming, number, data)
                    number += 1
                    if slot.expired and number <= last:
                        return False
            if number <= last:
                raise CarFault(STATION_CUT(name=name, count=number, total=last + 1))
        return True

    async def _write_piece(self, incoming: IncomingSegment, number: int, data: bytes) -> None:
        if await self._act(incoming.write_piece, number, data):
            self.round.bytes += len(data)

    async def _publish(self, segment: Segment, incoming: IncomingSegment) -> None:
        stored = await self._act(incoming.publish)
        self.round.stored.append(segment.name)
        if not await self._act(self._safe, stored):
            self.round.held += 1
            return
        await self._send_receipt(segment.name, stored.sha256)

    async def _send_receipt(self, name: str, sha256: str) -> None:
        await self._act(self._store.check)
        await self._car.receipt(name, sha256)
        self.round.receipts += 1


def _affects_all(fault: Exception) -> bool:
    """Return whether every other segment would fail, too."""
    closed = isinstance(fault, OSError) and fault.errno in (*FULL, errno.EROFS)
    return closed or isinstance(fault, StoreGone)


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Return runs of consecutive numbers as (first, last)."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs
