"""Replication of a store's sessions to an office, and repair of bad segments from there.

    a finished session -> each segment verified here -> sent -> verified there
            -> noted in replica_log.py -> the receipts to the car, if they waited for it

Pure apart from the given store and office. After any fault the caller starts again: results of
verification are recorded, and verified segments are not sent again.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

import msgspec

from fpvstation.fetch.pull import Act
from fpvstation.fetch.rate import Rate
from fpvstation.mirror.relay_queue import PendingSessions, SessionExtent
from fpvstation.store.identity import StoreError
from fpvstation.store.replica_log import REJUDGED_S, ReplicaLog, is_recent, segments_of
from fpvstation.store.store import Store
from fpvstation.store.sums_file import StoredSegment

REST = 4.0
"""Pause after verifying an old replica, as a multiple of its duration: the office reads its disk
for that at most a fifth of the time."""
FAULTS_MOST = 3
"""Consecutive failed sessions that end a round: the office or its connection is at fault."""
log = logging.getLogger("fpvstation")


class OfficeFault(Exception):
    """Fault of the office or its connection: try again later."""


class CopyProgress(msgspec.Struct):
    """Progress of a copy, in bytes. `done` includes bytes that were there before; `total` is
    None until it is counted."""

    moved: int
    done: int
    total: int | None = None


OnProgress = Callable[[CopyProgress], None]
"""Callback for the progress of a copy, called from time to time."""


def quiet(moved: CopyProgress) -> None:
    pass


class RemoteOffice(Protocol):
    """Interface of an office for a relay. Every call may raise OfficeFault."""

    @property
    def place(self) -> str:
        """Name of the office in replica_log.py."""

    async def claim(self, store: str, known: bool) -> None:
        """Check that the office belongs to this store; claim a new one. `known`: it was claimed
        before, so a missing marker means that its disk is not mounted."""

    async def send(
        self, session: str, listed: list[StoredSegment], anew: bool, tell: OnProgress
    ) -> None:
        """Copy missing files; `anew`: compare contents, not sizes and times."""

    async def check(self, session: str, listed: list[StoredSegment]) -> list[str]:
        """Verify the replica; return the names of bad or absent files."""

    async def fetch(self, session: str, tell: OnProgress) -> Mapping[str, str]:
        """Copy a session to this store's disk; return the local path of each file."""


class OfficeState(msgspec.Struct):
    """Station's view of one office."""

    place: str
    state: str = "not asked yet"
    """"ok", "sending", or the fault."""
    verified_s: float = 0.0
    """Time when it last verified a session, UTC; 0: never."""
    sent: int = 0
    """Sessions since the station started."""
    waiting: int = 0
    waiting_bytes: int = 0
    bytes: int = 0
    """Bytes moved since the station started."""
    rate: float = 0.0
    """Bytes per second while a session is sent."""
    bad: dict[str, str] = {}
    """Sessions that could not be sent, with the reason."""
    last_fault: str = ""
    fault_s: float = 0.0
    """Time of the last fault, UTC."""
    internal_fault: str = ""
    """Unexpected exception in the last round; "" after a round that had no such exception."""
    oldest_s: float = 0.0
    """Time of the oldest verification among the replicas there, UTC; 0 before the first replica."""
    rejudged: int = 0
    """Old replicas that were verified again since the station started."""
    rotted: int = 0
    """Segments that were bad or missing there in a repeated verification."""


class Replicator:
    """Replication of one store to one office."""

    def __init__(
        self,
        office: RemoteOffice,
        store: Store,
        copies: ReplicaLog,
        act: Act,
        clock_s: Callable[[], float] = time.monotonic,
        utc_s: Callable[[], float] = time.time,
    ) -> None:
        self.state = OfficeState(office.place)
        self._office, self._store, self._copies = office, store, copies
        self._act, self._clock_s, self._utc_s = act, clock_s, utc_s
        self.due = PendingSessions(clock_s)
        self._known = False
        """Whether the office has ever verified a session of this store."""
        self._judged_s = dict[str, float]()
        """Time of the last verification of each session there, UTC."""
        self._urgent = dict[str, None]()
        """Sessions to verify ahead of their schedule."""
        self._rest_until_s = -math.inf

    def tell(self, session: str) -> None:
        """Note that a session got a segment. Callable from any thread."""
        self.due.tell(session)

    def judge_soon(self, sessions: Iterable[str]) -> None:
        """Queue these sessions for verification. Callable from any thread."""
        self._urgent.update(dict.fromkeys(sessions))

    async def once(self, everything: bool) -> None:
        """Send the sessions that are due, and verify one old replica again; `everything`: scan
        the whole store for sessions to send.

        A failed session does not stop the round. Raises OfficeFault, StoreError, OSError if several
        fail in a row; completed work stays.
        """
        await self._act(self._store.check)
        if everything:
            for session in await self._act(self._behind):
                self.due.found(session)
        ready = self.due.ready()
        await self._measure()
        old = self._old()
        if ready or old:
            await self._office.claim(self._store.id, self._known)
        state, faults, last = self.state, 0, self.state.bad
        state.bad = {}
        for session in sorted(ready, key=lambda one: one in last):
            state.state = "sending"
            due_s = self.due.take(session)
            self._waits(session)
            try:
                await self._session(session)
                faults = 0
            except BaseException as fault:
                self.due.back(session, due_s)
                if not isinstance(fault, OfficeFault | StoreError | OSError):
                    raise
                state.bad[session] = str(fault)
                faults += 1
                if faults == FAULTS_MOST:
                    raise
            finally:
                self._waits()
        self._waits()
        if old:
            await self._rejudge(old)

    def _old(self) -> str:
        """Return the session whose replica is to be verified again now, or ""."""
        if self._clock_s() < self._rest_until_s:
            return ""
        for session in list(self._urgent):
            if session in self._judged_s:
                return session
        self._urgent.clear()
        oldest = min(self._judged_s, key=self._age_s, default="")
        old = oldest and not is_recent(self._judged_s[oldest], self._utc_s(), REJUDGED_S)
        self.state.oldest_s = self._judged_s[oldest] if oldest else 0.0
        return oldest if old else ""

    def _age_s(self, session: str) -> float:
        """Return the time of a session's last verification; 0 for a time in the future."""
        judged_s = self._judged_s[session]
        return judged_s if is_recent(judged_s, self._utc_s(), math.inf) else 0.0

    async def _rejudge(self, session: str) -> None:
        """Verify a replica at the office again, without moving it. Bad segments are sent again,
        or fetched from elsewhere if they are missing here, too."""
        began_s = self._clock_s()
        judged = await judge_copy(
            self._office, session, self._store, self._copies, self._act, self._utc_s
        )
        self._urgent.pop(session, None)
        self._judged_s[session] = self.state.verified_s = self._utc_s()
        if not judged.right:
            del self._judged_s[session]
        self.state.rejudged += 1
        self._rest_until_s = self._clock_s() + REST * (self._clock_s() - began_s)
        if judged.bad:
            self.state.rotted += len(judged.bad)
            self.due.found(session)
            raise OfficeFault(
                f"{self._office.place}: {len(judged.bad)} files of {session} are bad "
                f"or gone there ({judged.bad[0]}); they are sent again"
            )

    async def _measure(self) -> None:
        """Measure the queued sessions of unknown size."""
        new = self.due.unmeasured()
        self.due.measured(await self._act(self._sizes, new))
        self._waits()

    def _sizes(self, sessions: list[str]) -> list[tuple[str, SessionExtent]]:
        return [(one, SessionExtent(*self._store.extent(one))) for one in sessions]

    def _waits(self, sending: str = "") -> None:
        state = self.state
        state.waiting, state.rate = len(self.due) + bool(sending), 0.0
        state.waiting_bytes = self._others() + self.due.bytes_of(sending)

    def _others(self) -> int:
        """Return the bytes of all queued sessions except the one being sent."""
        return sum(one.bytes for one in self.due.waiting().values())

    def _behind(self) -> list[str]:
        """Return the sessions of which this office lacks a segment, or has one that is missing
        here."""
        removed = self._store.removed()
        return [
            session
            for session in sorted({*self._store.sessions(), *self._copies.sessions()})
            if not self._same(session, removed)
        ]

    def _same(self, session: str, removed: set[str]) -> bool:
        here = set(segments_of(self._store.listed(session)).items())
        copy = self._copies.of(session).get(self._office.place)
        there = set(copy.segments.items() if copy else ())
        if copy and there:
            self._known = True
            self._judged_s[session] = copy.verified_s
        absent = there - here - set(self._copies.evicted(session).items())
        return here <= there and {sha256 for _, sha256 in absent} <= removed

    def _there(self, session: str) -> dict[str, str]:
        copy = self._copies.of(session).get(self._office.place)
        return copy.segments if copy else {}

    async def _session(self, session: str) -> None:
        listed = await self._judged_here(session)
        there = self._there(session)
        wanted = segments_of(listed)
        if not wanted.items() <= there.items():
            await self._send(session, listed)
            # Segments that exist only there stay recorded: they may be needed for a repair.
            await self._note(session, self._office.place, {**there, **wanted})
            self.state.sent += 1
            self.state.verified_s = self._utc_s()
        await self._mend(session)

    async def _send(self, session: str, listed: list[StoredSegment]) -> None:
        office = self._office
        await office.send(session, listed, False, self._moves())
        if await office.check(session, listed):
            await office.send(session, listed, True, self._moves())
            bad = await office.check(session, listed)
            if bad:
                raise OfficeFault(
                    f"{office.place}: {len(bad)} files of {session} are not what was "
                    f"sent ({bad[0]})"
                )

    def _moves(self) -> OnProgress:
        """Return a callback for the progress of one session."""
        state, begun, rate = self.state, self.state.bytes, Rate()
        others = self._others()

        def tell(now: CopyProgress) -> None:
            state.bytes = begun + now.moved
            state.rate = rate.add(now.moved, self._clock_s())
            left = 0 if now.total is None else max(now.total - now.done, 0)
            state.waiting_bytes = others + left

        return tell

    async def _judged_here(self, session: str) -> list[StoredSegment]:
        """Return the segments that are right in this store. A bad one is set aside, so that it
        replaces no good replica."""
        for found in await self._act(self._store.audit, session):
            log.warning("%s: %s; %s", found.path, found.fault, found.done)
        for one in await self._act(self._store.listed, session):
            await self._act(self._store.judge, one)
        listed: list[StoredSegment] = await self._act(self._store.listed, session)
        await self._act(self._store.note_verified, session, self._utc_s())
        return listed

    async def _note(self, session: str, place: str, segments: Mapping[str, str]) -> None:
        def noted() -> None:
            self._store.check()  # do not write below a disk that was unmounted
            self._copies.note(session, place, segments, self._utc_s())

        await self._act(noted)
        self._judged_s[session] = self._utc_s()

    async def _mend(self, session: str) -> None:
        """Fetch segments that this office has and the store has lost."""
        removed = await self._act(self._store.removed)
        here = segments_of(await self._act(self._store.listed, session))
        here |= await self._act(self._copies.evicted, session)
        wanted = {
            name: sha256
            for name, sha256 in self._there(session).items()
            if sha256 not in removed and here.get(name) != sha256
        }
        if not wanted:
            return
        found = await self._office.fetch(session, self._moves())
        came = await take(self._store, session, found, wanted, self._act)
        await self._act(self._store.clear, found.values())
        lost = wanted.keys() - segments_of(came).keys()
        if lost:  # do not ask this office for these again
            left = {k: v for k, v in self._there(session).items() if k not in lost}
            await self._note(session, self._office.place, left)


class ReplicaCheck(NamedTuple):
    """Result of verifying a replica again: names of right and bad segments."""

    right: list[str]
    bad: list[str]


async def judge_copy(
    office: RemoteOffice,
    session: str,
    store: Store,
    copies: ReplicaLog,
    act: Act,
    utc_s: Callable[[], float],
) -> ReplicaCheck:
    """Verify an office's replica by its record, and correct the record. Nothing is moved;
    evicted segments that are bad there are marked as wanted here. Raises OfficeFault,
    StoreError, OSError."""
    copy = (await act(copies.of, session)).get(office.place)
    removed = await act(store.removed)
    there = copy.segments if copy else {}
    wanted = {name: sha256 for name, sha256 in there.items() if sha256 not in removed}
    listed = [StoredSegment(f"{session}/{name}", wanted[name]) for name in sorted(wanted)]
    bad = sorted(await office.check(session, listed)) if listed else []
    right = {name: sha256 for name, sha256 in wanted.items() if name not in bad}

    def noted() -> None:
        store.check()
        copies.note(session, office.place, right, utc_s())
        store.want_back(session, bad)

    await act(noted)
    return ReplicaCheck(sorted(right), bad)


async def take(
    store: Store, session: str, found: Mapping[str, str], wanted: Mapping[str, str], act: Act
) -> list[StoredSegment]:
    """Adopt files of this store's disk (path by name) as segments of a session. Each must match
    its checksum in `wanted`; return the adopted ones. Raises StoreError, OSError."""
    came = []
    await act(store.check)
    for name, path in found.items():
        if name in wanted:
            sums = await act(store.sums, path)
            if sums.sha256 == wanted[name]:
                came.append(await act(store.adopt, session, name, path, sums))
    return came
