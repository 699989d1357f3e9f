"""Takes the sessions of a store on to an office, and brings back what went bad here.

    a session that is finished -> each segment judged here -> sent -> judged there
            -> noted in copies.py -> the receipts to the car, if they waited for it

Pure but for the store and the office that it is given. Whatever ends it, it is called
again: what the office judged is noted, and nothing that was is sent again.
"""

import time
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from fpvstation.copies import HERE, Copies, segments_of
from fpvstation.due import Due, Waits
from fpvstation.identity import StoreError
from fpvstation.pull import Act
from fpvstation.rate import Rate
from fpvstation.store import Store
from fpvstation.sums_file import Stored

FAULTS_MOST = 3
"""So many sessions in a row that fail: it is the office, or the way to it."""


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

    async def send(
        self, session: str, listed: list[Stored], anew: bool, tell: Tell
    ) -> None:
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


class Relay:
    """One office, and the store whose sessions it gets."""

    def __init__(
        self, office: RemoteOffice, store: Store, copies: Copies, act: Act,
        clock_s: Callable[[], float] = time.monotonic,
        utc_s: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self.state = OfficeState(office.place)
        self._office, self._store, self._copies = office, store, copies
        self._act, self._clock_s, self._utc_s = act, clock_s, utc_s
        self.due = Due(clock_s)
        self._known = False
        """Has it ever judged a session of this store?"""

    def tell(self, session: str) -> None:
        """It got a segment. From any thread."""
        self.due.tell(session)

    async def once(self, everything: bool) -> None:
        """Sends what is due; `everything`: looks through the whole store for it.

        A session that fails keeps nobody from the next one. Raises OfficeFault,
        StoreError, OSError, if several fail in a row; what was done stays.
        """
        await self._act(self._store.check)
        if everything:
            for session in await self._act(self._behind):
                self.due.found(session)
        ready = self.due.ready()
        await self._measure()
        if ready:
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
        there = set(self._there(session).items())
        self._known = self._known or bool(there)
        return here <= there and {one[1] for one in there - here} <= removed

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
        """What is right in this store; what is not is set aside, so that no good copy
        is replaced by a bad one."""
        for one in await self._act(self._store.listed, session):
            await self._act(self._store.judge, one)
        listed: list[Stored] = await self._act(self._store.listed, session)
        await self._note(session, HERE, segments_of(listed))
        return listed

    async def _note(
        self, session: str, place: str, segments: Mapping[str, str]
    ) -> None:
        def noted() -> None:
            self._store.check()  # not below a disk that was unmounted meanwhile
            self._copies.note(session, place, segments, self._utc_s())

        await self._act(noted)

    async def _mend(self, session: str) -> None:
        """Brings back what this office has and the store has lost."""
        removed = await self._act(self._store.removed)
        here = segments_of(await self._act(self._store.listed, session))
        wanted = {
            name: sha256 for name, sha256 in self._there(session).items()
            if sha256 not in removed and here.get(name) != sha256
        }  # fmt: skip
        if not wanted:
            return
        found = await self._office.fetch(session, self._moves())
        came = await take(self._store, session, found, wanted, self._act)
        await self._act(self._store.clear, found.values())
        lost = wanted.keys() - segments_of(came).keys()
        if lost:  # it is not asked for these again
            left = {k: v for k, v in self._there(session).items() if k not in lost}
            await self._note(session, self._office.place, left)


async def take(
    store: Store, session: str, found: Mapping[str, str], wanted: Mapping[str, str],
    act: Act,
) -> list[Stored]:  # fmt: skip
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
