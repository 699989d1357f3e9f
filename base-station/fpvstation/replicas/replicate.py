"""Replication of a store's sessions to a remote, and repair of bad segments from there.

    a finished session -> each segment verified here -> sent -> verified there
            -> noted in replica_log.py -> the receipts to the car, if they waited for it

Pure apart from the given store and remote. After any fault the caller starts again: results of
verification are recorded, and verified segments are not sent again.
"""

import logging
import math
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Text, fault_text
from fpvstation.errors import StationError
from fpvstation.fetch.pull import Act
from fpvstation.fetch.rate import Rate
from fpvstation.replicas.pending import PendingSessions, SessionExtent
from fpvstation.replicas.remote import (
    DAMAGED,
    CopyProgress,
    OnProgress,
    PlaceFault,
    Remote,
    RemoteState,
    bad_copies,
)
from fpvstation.store.replica_log import REJUDGED_S, ReplicaLog, is_recent, segments_of
from fpvstation.store.store import Store
from fpvstation.store.sums_file import StoredSegment

SENDING = Text("station_sending", "sending")
REST = 4.0
"""Pause after verifying an old replica, as a multiple of its duration: the remote reads its disk
for that at most a fifth of the time."""
FAULTS_MOST = 3
"""Consecutive failed sessions that end a round: the remote or its connection is at fault."""
log = logging.getLogger("fpvstation")


class Replicator:
    """Replication of one store to one remote."""

    def __init__(
        self,
        remote: Remote,
        store: Store,
        replicas: ReplicaLog,
        act: Act,
        clock_s: Clock = time.monotonic,
        utc_s: Clock = time.time,
    ) -> None:
        self.state = RemoteState(remote.place)
        self._remote, self._store, self._replicas = remote, store, replicas
        self._act, self._clock_s, self._utc_s = act, clock_s, utc_s
        self.pending = PendingSessions(clock_s)
        self._has_replica = False
        """Whether the remote has ever verified a session of this store."""
        self._verified_s = dict[str, float]()
        """Time of the last verification of each session there, UTC."""
        self._urgent = dict[str, None]()
        """Sessions to verify ahead of their schedule."""
        self._rest_until_s = -math.inf

    def queue(self, session: str) -> None:
        """Note that a session got a segment. Callable from any thread."""
        self.pending.add(session)

    def verify_soon(self, sessions: Iterable[str]) -> None:
        """Queue these sessions for verification. Callable from any thread."""
        self._urgent.update(dict.fromkeys(sessions))

    async def once(self, everything: bool) -> None:
        """Send the sessions that are due, and verify one old replica again; `everything`: scan
        the whole store for sessions to send.

        A failed session does not stop the round. Raises PlaceFault, StationError, OSError if
        several fail in a row; completed work stays.
        """
        await self.survey(everything)
        ready = self.pending.ready()
        overdue = self._overdue()
        if ready or overdue:
            await self._remote.claim(self._store.id, self._has_replica)
        state, faults, last = self.state, 0, self.state.bad
        state.bad = {}
        for session in sorted(ready, key=lambda session: session in last):
            state.state = SENDING
            due_s = self.pending.take(session)
            self._count_waiting(session)
            try:
                await self._replicate(session)
                faults = 0
            except BaseException as fault:
                self.pending.put_back(session, due_s)
                if not isinstance(fault, PlaceFault | StationError | OSError):
                    raise
                state.bad[session] = fault_text(fault)
                faults += 1
                if faults == FAULTS_MOST:
                    raise
            finally:
                self._count_waiting()
        self._count_waiting()
        if overdue:
            await self._verify_again(overdue)

    async def survey(self, everything: bool) -> None:
        """Count the pending sessions, without contacting the remote; `everything`: scan the
        whole store for them first. Raises StationError, OSError."""
        await self._act(self._store.check)
        if everything:
            for session in await self._act(self._outdated):
                self.pending.add_now(session)
        await self._measure()

    def _overdue(self) -> str:
        """Return the session whose replica is to be verified again now, or ""."""
        if self._clock_s() < self._rest_until_s:
            return ""
        for session in list(self._urgent):
            if session in self._verified_s:
                return session
        self._urgent.clear()
        oldest = min(self._verified_s, key=self._age_s, default="")
        is_old = oldest and not is_recent(self._verified_s[oldest], self._utc_s(), REJUDGED_S)
        self.state.oldest_s = self._verified_s[oldest] if oldest else 0.0
        return oldest if is_old else ""

    def _age_s(self, session: str) -> float:
        """Return the time of a session's last verification; 0 for a time in the future."""
        verified_s = self._verified_s[session]
        return verified_s if is_recent(verified_s, self._utc_s(), math.inf) else 0.0

    async def _verify_again(self, session: str) -> None:
        """Verify a replica at the remote again, without moving it. Bad segments are sent again,
        or fetched from elsewhere if they are missing here, too."""
        began_s = self._clock_s()
        check = await verify_replica(
            self._remote, session, self._store, self._replicas, self._act, self._utc_s
        )
        self._urgent.pop(session, None)
        self._verified_s[session] = self.state.verified_s = self._utc_s()
        if not check.right:
            del self._verified_s[session]
        self.state.rejudged += 1
        self._rest_until_s = self._clock_s() + REST * (self._clock_s() - began_s)
        if check.bad:
            self.state.rotted += len(check.bad)
            self.pending.add_now(session)
            raise PlaceFault(bad_copies(self._remote.place, session, check.bad))

    async def _measure(self) -> None:
        """Measure the queued sessions of unknown size."""
        sessions = self.pending.without_extent()
        self.pending.set_extents(await self._act(self._sizes, sessions))
        self._count_waiting()

    def _sizes(self, sessions: list[str]) -> list[tuple[str, SessionExtent]]:
        extents = []
        for session in sessions:
            try:
                extents.append((session, SessionExtent(*self._store.extent(session))))
            except OSError:  # `_replicate` reports the reason
                extents.append((session, SessionExtent(0, 0.0)))
        return extents

    def _count_waiting(self, sending: str = "") -> None:
        state = self.state
        state.waiting, state.rate = len(self.pending) + bool(sending), 0.0
        state.waiting_bytes = self._queued_bytes() + self.pending.bytes_of(sending)
        state.complete = len(self._verified_s.keys() - {*self.pending.names(), sending})

    def _queued_bytes(self) -> int:
        """Return the bytes of all queued sessions except the one being sent."""
        return sum(extent.bytes for extent in self.pending.extents().values())

    def _outdated(self) -> list[str]:
        """Return the sessions of which this remote lacks a segment, or has one that is missing
        here."""
        removed, outdated = self._store.removed(), []
        for session in sorted({*self._store.sessions(), *self._replicas.sessions()}):
            try:
                if not self._is_current(session, removed) and not self._store.is_away(session):
                    outdated.append(session)
            except OSError:  # `_replicate` reports the reason
                outdated.append(session)
        return outdated

    def _is_current(self, session: str, removed: set[str]) -> bool:
        local = set(segments_of(self._store.listed(session)).items())
        replica = self._replicas.of(session).get(self._remote.place)
        there = set(replica.segments.items() if replica else ())
        if replica and there:
            self._has_replica = True
            self._verified_s[session] = replica.verified_s
        absent = there - local - set(self._replicas.evicted(session).items())
        return local <= there and {sha256 for _, sha256 in absent} <= removed

    def _remote_segments(self, session: str) -> dict[str, str]:
        replica = self._replicas.of(session).get(self._remote.place)
        return replica.segments if replica else {}

    async def _replicate(self, session: str) -> None:
        if await self._act(self._store.is_away, session):
            return
        listed = await self._verify_local(session)
        there = self._remote_segments(session)
        segments = segments_of(listed)
        if not segments.items() <= there.items():
            await self._send(session, listed)
            # Segments that exist only there stay recorded: they may be needed for a repair.
            await self._record(session, self._remote.place, {**there, **segments})
            self.state.sent += 1
            self.state.verified_s = self._utc_s()
        await self._fetch_lost(session)

    async def _send(self, session: str, listed: list[StoredSegment]) -> None:
        remote = self._remote
        await remote.send(session, listed, False, self._progress_of())
        if await remote.check(session, listed):
            await remote.send(session, listed, True, self._progress_of())
            bad = await remote.check(session, listed)
            if bad:
                raise PlaceFault(bad_copies(remote.place, session, bad))

    def _progress_of(self) -> OnProgress:
        """Return a callback for the progress of one session."""
        state, begun, rate = self.state, self.state.bytes, Rate()
        others = self._queued_bytes()

        def on_progress(progress: CopyProgress) -> None:
            state.bytes = begun + progress.moved
            state.rate = rate.add(progress.moved, self._clock_s())
            remaining = 0 if progress.total is None else max(progress.total - progress.done, 0)
            state.waiting_bytes = others + remaining

        return on_progress

    async def _verify_local(self, session: str) -> list[StoredSegment]:
        """Return the segments that are right in this store. A bad one is set aside, so that it
        replaces no good replica."""
        for finding in await self._act(self._store.audit, session):
            log.warning("%s: %s; %s", finding.path, finding.fault, finding.done)
        bad = set[str]()
        for segment in await self._act(self._store.listed, session):
            if await self._act(self._store.verify_segment, segment):
                bad.add(segment.path)
        if bad and await self._act(self._store.archived, session):
            raise StationError(DAMAGED(path=min(bad), session=session))
        listed: list[StoredSegment] = await self._act(self._store.listed, session)
        await self._act(self._store.note_verified, session, self._utc_s())
        return listed

    async def _record(self, session: str, place: str, segments: Mapping[str, str]) -> None:
        def write() -> None:
            self._store.check()  # do not write below a disk that was unmounted
            self._replicas.record(session, place, segments, self._utc_s())

        await self._act(write)
        self._verified_s[session] = self._utc_s()

    async def _fetch_lost(self, session: str) -> None:
        """Fetch segments that this remote has and the store has lost."""
        removed = await self._act(self._store.removed)
        local = segments_of(await self._act(self._store.listed, session))
        local |= await self._act(self._replicas.evicted, session)
        wanted = {
            name: sha256
            for name, sha256 in self._remote_segments(session).items()
            if sha256 not in removed and local.get(name) != sha256
        }
        if not wanted:
            return
        paths = await self._remote.fetch(session, self._progress_of())
        adopted = await adopt_files(self._store, session, paths, wanted, self._act)
        await self._act(self._store.clear, paths.values())
        lost = wanted.keys() - segments_of(adopted).keys()
        if lost:  # do not ask this remote for these again
            rest = {
                name: sha256
                for name, sha256 in self._remote_segments(session).items()
                if name not in lost
            }
            await self._record(session, self._remote.place, rest)


class ReplicaCheck(NamedTuple):
    """Result of verifying a replica again: names of right and bad segments."""

    right: list[str]
    bad: list[str]


async def verify_replica(
    remote: Remote, session: str, store: Store, replicas: ReplicaLog, act: Act, utc_s: Clock
) -> ReplicaCheck:
    """Verify a remote's replica by its record, and correct the record. Nothing is moved;
    evicted segments that are bad there are marked as wanted here. Raises PlaceFault,
    StationError, OSError."""
    replica = (await act(replicas.of, session)).get(remote.place)
    removed = await act(store.removed)
    recorded = replica.segments if replica else {}
    expected = {name: sha256 for name, sha256 in recorded.items() if sha256 not in removed}
    listed = [StoredSegment(f"{session}/{name}", expected[name]) for name in sorted(expected)]
    bad = sorted(await remote.check(session, listed)) if listed else []
    right = {name: sha256 for name, sha256 in expected.items() if name not in bad}

    def write() -> None:
        store.check()
        replicas.record(session, remote.place, right, utc_s())
        store.want_back(session, bad)

    await act(write)
    return ReplicaCheck(sorted(right), bad)


async def adopt_files(
    store: Store, session: str, paths: Mapping[str, str], wanted: Mapping[str, str], act: Act
) -> list[StoredSegment]:
    """Adopt files of this store's disk (path by name) as segments of a session. Each must match
    its checksum in `wanted`; return the adopted ones. Raises StationError, OSError."""
    adopted = []
    await act(store.check)
    for name, path in paths.items():
        if name in wanted:
            sums = await act(store.sums, path)
            if sums.sha256 == wanted[name]:
                adopted.append(await act(store.adopt, session, name, path, sums))
    return adopted
