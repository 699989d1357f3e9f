"""Set of a station's remotes; each has its own replicator with back-off after faults."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path

from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import SAYS, Text, fault_text
from fpvstation.errors import INTERNAL, StationError
from fpvstation.fetch.pull import Act
from fpvstation.replicas.rdcp import Rdcp
from fpvstation.replicas.remote import PlaceFault, Remote, RemoteState
from fpvstation.replicas.replicate import Replicator
from fpvstation.replicas.s3 import S3
from fpvstation.settings import BUCKET_SCHEME, ReplicaSettings, Window
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store
from fpvstation.store.sums_file import StoredSegment

POLL_S = 10.0
BACK_OFF_S = (5.0, 15.0, 60.0, 300.0, 900.0)
"""Delays before the next attempts after consecutive faults; the last one repeats for ever."""
EVERYTHING_S = 3600.0
"""Interval between scans of the whole store for damaged and missed sessions."""
log = logging.getLogger("fpvstation")


def remotes_of(replicas: ReplicaSettings, root: Path, incoming: str = "office") -> list[Remote]:
    """Return the remotes of the settings. `root`: of this store; `incoming`: name of the folder
    for incoming files; each process has its own."""
    return [
        S3(target, root, incoming)
        if target.startswith(BUCKET_SCHEME)
        else Rdcp(target, root, replicas.options_of(target), incoming)
        for target in replicas.targets
    ]


class Remotes:
    """Replicators to all remotes; there may be zero remotes."""

    def __init__(
        self,
        remotes: Sequence[Remote],
        required: int,
        replicas: ReplicaLog,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock_s: Clock = time.monotonic,
        utc_s: Clock = time.time,
        windows: Mapping[str, Window] | None = None,
    ) -> None:
        """Set the remotes. `required`: replicas before a car may forget a segment, including the
        store's own. `windows`: hours of the places that are used in these only."""
        self._remotes, self._required, self._replicas = remotes, required, replicas
        self._sleep, self._clock_s, self._utc_s = sleep, clock_s, utc_s
        self._windows = windows or {}
        self._replicators: list[Replicator] = []

    @property
    def states(self) -> list[RemoteState]:
        return [replicator.state for replicator in self._replicators]

    def alone(self) -> tuple[int, float]:
        """Return the number of sessions that are at no remote, and the time when the oldest of
        them got its last segment, UTC; (0, 0.0) for a station that has no remote."""
        queues = [replicator.pending.extents() for replicator in self._replicators]
        sessions = set[str]().union(*queues).intersection(*queues)
        changed_s = [queues[0][session].changed_s for session in sessions]
        return len(changed_s), min(changed_s, default=0.0)

    def queue(self, session: str) -> None:
        """Note that a session got a segment. Callable from any thread."""
        for replicator in self._replicators:
            replicator.queue(session)

    @property
    def places(self) -> list[str]:
        """Names of all remotes, as in replica_log.py."""
        return [remote.place for remote in self._remotes]

    def verify_soon(self, sessions: Iterable[str]) -> None:
        """Queue these sessions for verification at all remotes. Callable from any thread."""
        names = list(sessions)
        for replicator in self._replicators:
            replicator.verify_soon(names)

    def safe(self, stored: StoredSegment) -> bool:
        """Return True if enough remotes have this segment, recently verified, so that the car
        may forget it. May block."""
        needed = self._required - 1
        return needed <= 0 or self._replicas.count(stored, self.places, self._utc_s()) >= needed

    def open(self, store: Store, act: Act) -> None:
        """Set the store to replicate."""
        self._replicators = [
            Replicator(remote, store, self._replicas, act, self._clock_s, self._utc_s)
            for remote in self._remotes
        ]

    async def run(self) -> None:
        """Run all replicators until cancelled."""
        await asyncio.gather(*(self._replicate(replicator) for replicator in self._replicators))

    async def _replicate(self, replicator: Replicator) -> None:
        faults, scanned_s = 0, -math.inf
        while True:
            everything = self._clock_s() - scanned_s >= EVERYTHING_S
            text: Text | None = None
            internal_fault: Text | None = None
            try:
                await self._round(replicator, everything)
            except (PlaceFault, StationError, OSError) as fault:
                text = fault_text(fault)
            except Exception as fault:  # one remote never ends the others
                text = internal_fault = INTERNAL(reason=repr(fault))
                log.exception("%s", replicator.state.place)
            else:
                scanned_s = self._clock_s() if everything else scanned_s
                for session, reason in replicator.state.bad.items():
                    text = SAYS(place=session, reason=reason)
            if text:
                if text != replicator.state.last_fault:
                    log.warning("%s", text)
                replicator.state.last_fault, replicator.state.fault_s = text, self._utc_s()
            replicator.state.internal_fault = internal_fault
            replicator.state.state = text or "ok"
            wait_s = BACK_OFF_S[min(faults, len(BACK_OFF_S) - 1)] if text else POLL_S
            faults = faults + 1 if text else 0
            await self._sleep(wait_s)

    async def _round(self, replicator: Replicator, everything: bool) -> None:
        """Run a round if the remote's window is open, and cancel it when the window closes: the
        next round resumes. While it is closed, only count the pending sessions."""
        window = self._windows.get(replicator.state.place)
        if window is None:
            await replicator.once(everything)
            return
        if window.is_open(self._utc_s()):
            replicator.state.waits_until = ""
            work = asyncio.create_task(replicator.once(everything))
            closing = asyncio.create_task(self._until_closed(window))
            try:
                await asyncio.wait({work, closing}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (work, closing):
                    task.cancel()
                await asyncio.gather(work, closing, return_exceptions=True)
            if not work.cancelled():
                work.result()
                return
        replicator.state.waits_until = f"{window.begin:%H:%M}"
        await replicator.survey(everything)

    async def _until_closed(self, window: Window) -> None:
        while window.is_open(self._utc_s()):  # no timer: the wall clock may be set meanwhile
            await self._sleep(POLL_S)
