"""Set of a station's offices; each has its own relay with back-off after faults."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

from fpvstation.fetch.pull import Act
from fpvstation.mirror.replicate import OfficeFault, OfficeState, RemoteOffice, Replicator
from fpvstation.store.identity import StoreError
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store
from fpvstation.store.sums_file import StoredSegment

POLL_S = 10.0
BACK_OFF_S = (5.0, 15.0, 60.0, 300.0, 900.0)
"""Delays before the next attempts after consecutive faults; the last one repeats for ever."""
EVERYTHING_S = 3600.0
"""Interval between scans of the whole store for damaged and missed sessions."""
log = logging.getLogger("fpvstation")


class Offices:
    """Relays to all offices; there may be zero offices."""

    def __init__(
        self,
        offices: Sequence[RemoteOffice],
        required: int,
        copies: ReplicaLog,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock_s: Callable[[], float] = time.monotonic,
        utc_s: Callable[[], float] = time.time,
    ) -> None:
        """Set the offices. `required`: replicas before a car may forget a segment, including the
        store's own."""
        self._offices, self._required, self._copies = offices, required, copies
        self._sleep, self._clock_s, self._utc_s = sleep, clock_s, utc_s
        self._relays: list[Replicator] = []

    @property
    def states(self) -> list[OfficeState]:
        return [one.state for one in self._relays]

    def alone(self) -> tuple[int, float]:
        """Return the number of sessions that are at no office, and the time when the oldest of
        them got its last segment, UTC; (0, 0.0) for a station that has no office."""
        waiting = [one.due.waiting() for one in self._relays]
        nowhere = set[str]().union(*waiting).intersection(*waiting)
        came_s = [waiting[0][one].came_s for one in nowhere]
        return len(came_s), min(came_s, default=0.0)

    def tell(self, session: str) -> None:
        """Note that a session got a segment. Callable from any thread."""
        for one in self._relays:
            one.tell(session)

    @property
    def places(self) -> list[str]:
        """Names of all offices, as in replica_log.py."""
        return [one.place for one in self._offices]

    def judge_soon(self, sessions: Iterable[str]) -> None:
        """Queue these sessions for verification at all offices. Callable from any thread."""
        wanted = list(sessions)
        for one in self._relays:
            one.judge_soon(wanted)

    def safe(self, stored: StoredSegment) -> bool:
        """Return True if enough offices have this segment, recently verified, so that the car
        may forget it. May block."""
        most = self._required - 1
        return most <= 0 or (self._copies.places(stored, self.places, self._utc_s()) >= most)

    def open(self, store: Store, act: Act) -> None:
        """Set the store to replicate."""
        self._relays = [
            Replicator(one, store, self._copies, act, self._clock_s, self._utc_s)
            for one in self._offices
        ]

    async def run(self) -> None:
        """Run all relays until cancelled."""
        await asyncio.gather(*(self._keep(one) for one in self._relays))

    async def _keep(self, relay: Replicator) -> None:
        faults, looked_s = 0, -math.inf
        while True:
            everything = self._clock_s() - looked_s >= EVERYTHING_S
            words = internal_fault = ""
            try:
                await relay.once(everything)
            except (OfficeFault, StoreError, OSError) as fault:
                words = str(fault)
            except Exception as fault:  # one office never ends the others
                words = internal_fault = f"internal fault: {fault!r}"
                log.exception("%s", relay.state.place)
            else:
                looked_s = self._clock_s() if everything else looked_s
                for session, why in relay.state.bad.items():
                    words = f"{session}: {why}"
            if words:
                if words != relay.state.last_fault:
                    log.warning("%s", words)
                relay.state.last_fault, relay.state.fault_s = words, self._utc_s()
            relay.state.internal_fault = internal_fault
            relay.state.state = words or "ok"
            wait_s = BACK_OFF_S[min(faults, len(BACK_OFF_S) - 1)] if words else POLL_S
            faults = faults + 1 if words else 0
            await self._sleep(wait_s)
