"""Takes the sessions of a store on to an office, and brings back what went bad here.

    a session that is finished -> each segment judged here -> sent -> judged there
            -> noted in copies.py -> the receipts to the car, if they waited for it

Pure but for the store and the office that it is given. Whatever ends it, it is called
again: what the office judged is noted, and nothing that was is sent again.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

import msgspec

from fpvstation.fetch.pull import Act
from fpvstation.fetch.rate import Rate
from fpvstation.mirror.relay_queue import Due, Waits
from fpvstation.store.identity import StoreError
from fpvstation.store.replica_log import REJUDGED_S, Copies, is_recent, segments_of
from fpvstation.store.store import Store
from fpvstation.store.sums_file import Stored

REST = 4.0
"""Pause after a judgement of an old copy, as a multiple of its duration: the office
reads its disk for that at most a fifth of the time."""
FAULTS_MOST = 3
"""So many sessions in a row that fail: it is the office, or the way to it."""
log = logging.getLogger("fpvstation")


class OfficeFault(Exception):
    """The office, or the way to it, fails: try again later."""


class Moved(msgspec.Struct):
    """How far a copy is, in bytes. `done` counts what was there before, too; `total`
    None: it is not counted yet."""

    moved: int
    done: int
    total: int | None = None


Tell = Callable[[Moved], None]
"""Hears how far a copy is, now and then."""


def quiet(moved: Moved) -> None:
    """A Tell for nobody."""


class RemoteOffice(Protocol):
    """An office as a relay asks it. Every call may raise OfficeFault."""

    @property
    def place(self) -> str:
        """Its name in copies.py."""

    async def claim(self, store: str, known: bool) -> None:
        """Is it this store's own? A new one becomes that; `known`: it was before, so
        one without a marker is a disk that is not mounted."""

    async def send(self, session: str, listed: list[Stored], anew: bool, tell: Tell) -> None:
        """Copies what is not there; `anew`: compares contents, not sizes and times."""

    async def check(self, session: str, listed: list[Stored]) -> list[str]:
        """Judges the copy there; returns the names of what is bad or absent."""

    async def fetch(self, session: str, tell: Tell) -> Mapping[str, str]:
        """Brings a session into this store's disk: path there of each file."""


class OfficeState(msgspec.Struct):
    """What a station knows of one office now."""

    place: str
    state: str = "not asked yet"
    """"ok", "sending", or what is wrong."""
    verified_s: float = 0.0
    """When it judged a session last, UTC; 0: never."""
    sent: int = 0
    """Sessions since the station started."""
    waiting: int = 0
    waiting_bytes: int = 0
    bytes: int = 0
    """Moved since the station started."""
    rate: float = 0.0
    """Bytes a second, while a session is sent."""
    bad: dict[str, str] = {}
    """Sessions that did not get there, and why."""
    last_fault: str = ""
    fault_s: float = 0.0
    """When that was, UTC."""
    internal_fault: str = ""
    """An exception that this program did not expect in the last round; "" if none."""
    oldest_s: float = 0.0
    """When the copy there that was not judged for longest was judged, UTC; 0: none."""
    rejudged: int = 0
    """Old copies that were judged again since the station started."""
    rotted: int = 0
    """Segments that were bad or gone there when they were judged again."""


class Relay:
    """One office, and the store whose sessions it gets."""

    def __init__(
        self,
        office: RemoteOffice,
        store: Store,
        copies: Copies,
        act: Act,
        clock_s: Callable[[], float] = time.monotonic,
        utc_s: Callable[[], float] = time.time,
    ) -> None:
        self.state = OfficeState(office.place)
        self._office, self._store, self._copies = office, store, copies
        self._act, self._clock_s, self._utc_s = act, clock_s, utc_s
        self.due = Due(clock_s)
        self._known = False
        """Has it ever judged a session of this store?"""
        self._judged_s = dict[str, float]()
        """When each session there was judged, UTC."""
        self._urgent = dict[str, None]()
        """Sessions to judge again before their time."""
        self._rest_until_s = -math.inf

    def tell(self, session: str) -> None:
        """It got a segment. From any thread."""
        self.due.tell(session)

    def judge_soon(self, sessions: Iterable[str]) -> None:
        """Judge the copies of these sessions again. From any thread."""
        self._urgent.update(dict.fromkeys(sessions))

    async def once(self, everything: bool) -> None:
        """Send the sessions that are due, and judge one old copy again; `everything`:
        look through the whole store for them.

        A session that fails keeps nobody from the next one. Raises OfficeFault,
        StoreError, OSError, if several fail in a row; what was done stays.
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
        """Return the session whose copy is to be judged again now; "" for none."""
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
        """Return when a copy was judged; a time in the future is no time."""
        judged_s = self._judged_s[session]
        return judged_s if is_recent(judged_s, self._utc_s(), math.inf) else 0.0

    async def _rejudge(self, session: str) -> None:
        """Judge a copy at the office again, without moving it. A bad one is sent again,
        or fetched from elsewhere if it is not here either."""
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
        """Finds out how much waits."""
        new = self.due.unmeasured()
        self.due.measured(await self._act(self._sizes, new))
        self._waits()

    def _sizes(self, sessions: list[str]) -> list[tuple[str, Waits]]:
        return [(one, Waits(*self._store.extent(one))) for one in sessions]

    def _waits(self, sending: str = "") -> None:
        state = self.state
        state.waiting, state.rate = len(self.due) + bool(sending), 0.0
        state.waiting_bytes = self._others() + self.due.bytes_of(sending)

    def _others(self) -> int:
        """Bytes of all sessions that wait, but for the one that goes now."""
        return sum(one.bytes for one in self.due.waiting().values())

    def _behind(self) -> list[str]:
        """Sessions of which this office has not all, or has what is not here."""
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
            # What is only there is not forgotten: it may have to come back.
            await self._note(session, self._office.place, {**there, **wanted})
            self.state.sent += 1
            self.state.verified_s = self._utc_s()
        await self._mend(session)

    async def _send(self, session: str, listed: list[Stored]) -> None:
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

    def _moves(self) -> Tell:
        """What one session's copy tells of itself."""
        state, begun, rate = self.state, self.state.bytes, Rate()
        others = self._others()

        def tell(now: Moved) -> None:
            state.bytes = begun + now.moved
            state.rate = rate.add(now.moved, self._clock_s())
            left = 0 if now.total is None else max(now.total - now.done, 0)
            state.waiting_bytes = others + left

        return tell

    async def _judged_here(self, session: str) -> list[Stored]:
        """Return the segments that are right in this store. A bad one is set aside, so
        that no good copy is replaced by it."""
        for found in await self._act(self._store.audit, session):
            log.warning("%s: %s; %s", found.path, found.fault, found.done)
        for one in await self._act(self._store.listed, session):
            await self._act(self._store.judge, one)
        listed: list[Stored] = await self._act(self._store.listed, session)
        await self._act(self._store.note_verified, session, self._utc_s())
        return listed

    async def _note(self, session: str, place: str, segments: Mapping[str, str]) -> None:
        def noted() -> None:
            self._store.check()  # not below a disk that was unmounted meanwhile
            self._copies.note(session, place, segments, self._utc_s())

        await self._act(noted)
        self._judged_s[session] = self._utc_s()

    async def _mend(self, session: str) -> None:
        """Brings back what this office has and the store has lost."""
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
        if lost:  # it is not asked for these again
            left = {k: v for k, v in self._there(session).items() if k not in lost}
            await self._note(session, self._office.place, left)


class JudgedCopy(NamedTuple):
    """Segments of a copy that was judged again."""

    right: list[str]
    bad: list[str]


async def judge_copy(
    office: RemoteOffice,
    session: str,
    store: Store,
    copies: Copies,
    act: Act,
    utc_s: Callable[[], float],
) -> JudgedCopy:
    """Judge an office's copy by its record, and correct the record. Nothing is moved;
    evicted segments that are bad there are wanted here again. Raises OfficeFault,
    StoreError, OSError."""
    copy = (await act(copies.of, session)).get(office.place)
    removed = await act(store.removed)
    there = copy.segments if copy else {}
    wanted = {name: sha256 for name, sha256 in there.items() if sha256 not in removed}
    listed = [Stored(f"{session}/{name}", wanted[name]) for name in sorted(wanted)]
    bad = sorted(await office.check(session, listed)) if listed else []
    right = {name: sha256 for name, sha256 in wanted.items() if name not in bad}

    def noted() -> None:
        store.check()
        copies.note(session, office.place, right, utc_s())
        store.want_back(session, bad)

    await act(noted)
    return JudgedCopy(sorted(right), bad)


async def take(
    store: Store, session: str, found: Mapping[str, str], wanted: Mapping[str, str], act: Act
) -> list[Stored]:
    """Takes files of this store's disk, path by name, for segments of a session: each
    is judged by the checksum that is wanted; returns those that came. Raises
    StoreError, OSError."""
    came = []
    await act(store.check)
    for name, path in found.items():
        if name in wanted:
            sums = await act(store.sums, path)
            if sums.sha256 == wanted[name]:
                came.append(await act(store.adopt, session, name, path, sums))
    return came
