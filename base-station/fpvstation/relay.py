"""Takes the sessions of a store on to an office, and brings back what went bad here.

    a session that is finished -> each segment judged here -> sent -> judged there
            -> noted in copies.py -> the receipts to the car, if they waited for it

Pure but for the store and the office that it is given. Whatever ends it, it is called
again: what the office judged is noted, and nothing that was is sent again.
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from fpvstation.copies import HERE, Copies, segments_of
from fpvstation.identity import StoreError
from fpvstation.pull import Act
from fpvstation.store import Store, Stored

SETTLED_S, LATEST_S = 60.0, 600.0
"""A session goes when it got no segment for so long, or its first one waited longer."""
FAULTS_MOST = 3
"""So many sessions in a row that fail: it is the office, or the way to it."""


class OfficeFault(Exception):
    """The office, or the way to it, fails: try again later."""


class RemoteOffice(Protocol):
    """An office as a relay asks it. Every call may raise OfficeFault."""

    @property
    def place(self) -> str:
        """Its name in copies.py."""

    async def claim(self, store: str, known: bool) -> None:
        """Is it this store's own? A new one becomes that; `known`: it was before, so
        one without a marker is a disk that is not mounted."""

    async def send(self, session: str, listed: list[Stored], anew: bool) -> None:
        """Copies what is not there; `anew`: compares contents, not sizes and times."""

    async def check(self, session: str, listed: list[Stored]) -> list[str]:
        """Judges the copy there; returns the names of what is bad or absent."""

    async def fetch(self, session: str) -> Mapping[str, str]:
        """Brings a session into this store's disk: path there of each segment."""


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
    bad: dict[str, str] = {}
    """Sessions that did not get there, and why."""


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
        self._due_s: dict[str, float] = {}
        self._first_s: dict[str, float] = {}
        self._known = False
        """Has it ever judged a session of this store?"""

    def tell(self, session: str) -> None:
        """It got a segment. From any thread."""
        now_s = self._clock_s()
        first_s = self._first_s.setdefault(session, now_s)
        self._due_s[session] = min(now_s + SETTLED_S, first_s + LATEST_S)

    async def once(self, everything: bool) -> None:
        """Sends what is due; `everything`: looks through the whole store for it.

        A session that fails keeps nobody from the next one. Raises OfficeFault,
        StoreError, OSError, if several fail in a row; what was done stays.
        """
        await self._act(self._store.check)
        if everything:
            for session in await self._act(self._behind):
                self._due_s.setdefault(session, -math.inf)
        ready = self._ready()
        if ready:
            await self._office.claim(self._store.id, self._known)
        state, faults, last = self.state, 0, self.state.bad
        state.bad = {}
        for session in sorted(ready, key=lambda one: one in last):
            state.state, state.waiting = "sending", len(self._due_s)
            self._first_s.pop(session, None)
            due_s = self._due_s.pop(session)
            try:
                await self._session(session)
                faults = 0
            except BaseException as fault:
                self._due_s.setdefault(session, due_s)
                if not isinstance(fault, OfficeFault | StoreError | OSError):
                    raise
                state.bad[session] = str(fault)
                faults += 1
                if faults == FAULTS_MOST:
                    raise
        state.waiting = len(self._due_s)

    def _ready(self) -> list[str]:
        now_s = self._clock_s()
        return [one for one, due_s in list(self._due_s.items()) if due_s <= now_s]

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
        await office.send(session, listed, anew=False)
        if await office.check(session, listed):
            await office.send(session, listed, anew=True)
            bad = await office.check(session, listed)
            if bad:
                raise OfficeFault(
                    f"{office.place}: {len(bad)} files of {session} are not what was "
                    f"sent ({bad[0]})"
                )

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
        came = await restore(self._office, self._store, session, wanted, self._act)
        lost = wanted.keys() - segments_of(came).keys()
        if lost:  # it is not asked for these again
            left = {k: v for k, v in self._there(session).items() if k not in lost}
            await self._note(session, self._office.place, left)


async def restore(
    office: RemoteOffice, store: Store, session: str, wanted: Mapping[str, str],
    act: Act,
) -> list[Stored]:  # fmt: skip
    """Brings segments back from an office, each judged by its checksum; returns those
    that came. Raises OfficeFault, StoreError, OSError."""
    came = []
    await act(store.check)
    for name, path in (await office.fetch(session)).items():
        if name in wanted:
            sums = await act(store.sums, path)
            if sums.sha256 == wanted[name]:
                came.append(await act(store.adopt, session, name, path, sums))
    return came
