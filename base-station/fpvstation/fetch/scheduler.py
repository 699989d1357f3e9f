"""Scheduler of all fetches: each car on its own, a few at once, with back-off after faults."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Phrase, State, Text, fault_text, segments
from fpvstation.errors import INTERNAL, NOT_CONTACTED, StationError
from fpvstation.fetch.cars import Car, Cars
from fpvstation.fetch.client import CertificateChanged, HttpCar, certificate_of, session
from fpvstation.fetch.fair_slots import AT_ONCE, FairSemaphore
from fpvstation.fetch.pull import CarFault, Pull, Round
from fpvstation.fetch.rate import Rate
from fpvstation.store.identity import FULL
from fpvstation.store.replica_index import CarInventory
from fpvstation.store.store import Store
from fpvstation.store.sums_file import StoredSegment

POLL_S = 5.0
BACK_OFF_S = (2.0, 5.0, 15.0, 60.0, 300.0)
"""Delays before the next attempt after consecutive failed rounds; a new segment resets them."""
NO_ROOM = Text(
    "station_full",
    "the store's disk is full: delete other files on it or sessions (`fpvstation "
    "rm`, then the folder .trash), or use a larger disk with --store; the car "
    "keeps the rest",
)
FETCHING = Text("station_fetching", "fetching")
EVERYTHING_S = 3600.0
"""Interval of comparing segments with a receipt, too: a store may have lost some."""
STATION_FAILED = Phrase("station_failed", "{count} failed ({name}: {reason}); retrying")
STATION_CERTIFICATE = Text(
    "station_certificate", "the car has a new certificate, and proved its identity"
)
log = logging.getLogger("fpvstation")


class CarState(msgspec.Struct):
    """Station's view of one car."""

    name: str
    folder: str
    url: str
    state: State = NOT_CONTACTED
    """"ok", FETCHING, or the fault."""
    seen_s: float = 0.0
    """Time of the last answer, UTC; 0: never."""
    stored_s: float = 0.0
    """Time when a segment was last stored or the queue was empty, UTC; before that, the time
    when the station started with this car."""
    stored: int = 0
    """Segments since the station started."""
    waiting: int = 0
    bytes: int = 0
    """Bytes fetched since the station started."""
    waiting_bytes: int = 0
    rate: float = 0.0
    """Bytes per second during a fetch."""
    last_fault: Text | None = None
    fault_s: float = 0.0
    """Time of the last fault, UTC."""
    card_free: int = 0
    card_total: int = 0
    """Bytes of the car's card; 0: not reported."""
    bad: dict[str, Text] = {}
    """Segments that arrived incomplete or damaged, with the reason."""
    held: int = 0
    """Segments that are stored here and wait for more replicas before the car may forget."""
    removed: int = 0
    """Segments that people removed here before their receipt: the car keeps them."""
    late: dict[str, Text] = {}
    """Segments of archived sessions, with the next step: the car keeps them."""
    internal_fault: Text | None = None
    """Unexpected exception in the last round."""


class FetchScheduler:
    """Fetches from all cars of the list."""

    def __init__(
        self,
        cars: Cars,
        store: Store,
        safe: Callable[[StoredSegment], bool] = lambda stored: True,
        utc_s: Clock = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.states: dict[str, CarState] = {}
        self.inventory = CarInventory()
        self._cars, self._store, self._safe = cars, store, safe
        self._utc_s, self._sleep = utc_s, sleep
        self._semaphore = FairSemaphore()
        self._disk = ThreadPoolExecutor(2 * AT_ONCE, "store")
        self._tasks: dict[Car, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Fetch until cancelled; follow the list of cars as it changes. Raises the
        exception of a car's task that ended."""
        try:
            while True:
                self._follow_list()
                for task in self._tasks.values():
                    if task.done():
                        task.result()
                await self._sleep(POLL_S)
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            self._disk.shutdown(wait=False, cancel_futures=True)

    def _follow_list(self) -> None:
        try:
            listed = set(self._cars.all())
        except StationError as fault:
            log.error("%s", fault)
            return
        for car in self._tasks.keys() - listed:
            self._tasks.pop(car).cancel()
            self.states.pop(car.id, None)
            self.inventory.forget(car.folder)
        for car in listed - self._tasks.keys():
            self.states[car.id] = CarState(car.name, car.folder, car.url, stored_s=self._utc_s())
            self._tasks[car] = asyncio.create_task(self._fetch_car(car))

    async def _fetch_car(self, car: Car) -> None:
        state, faults, compare_s = self.states[car.id], 0, -math.inf
        while True:
            now_s, stored = time.monotonic(), state.stored
            everything = now_s >= compare_s
            fault: Text | None
            internal_fault: Text | None = None
            try:
                result = await self._round(car, state, everything)
            except (CarFault, StationError, OSError) as error:
                full = isinstance(error, OSError) and error.errno in FULL
                fault = NO_ROOM if full else fault_text(error)
            except Exception as error:  # one car never ends the others
                fault = internal_fault = INTERNAL(reason=repr(error))
                log.exception("%s", car.folder)
            else:
                fault, state.bad = _fault_of(result), result.bad
                if everything:
                    compare_s = now_s + (BACK_OFF_S[-1] if fault else EVERYTHING_S)
            state.internal_fault = internal_fault
            self._set_state(state, fault)
            if state.stored > stored:
                faults = 0
            wait_s = BACK_OFF_S[min(faults, len(BACK_OFF_S) - 1)] if fault else POLL_S
            faults = faults + 1 if fault else 0
            await self._sleep(wait_s)

    async def _round(self, car: Car, state: CarState, everything: bool) -> Round:
        async with session(car.url, car.fingerprint) as client:
            pull = Pull(
                HttpCar(car, client),
                self._store,
                car.folder,
                self._run_blocking,
                self._semaphore,
                self._safe,
            )
            begun = state.bytes
            watch = asyncio.create_task(self._update_state(pull, state, begun))
            try:
                return await pull.once(everything, last=state.bad)
            except CertificateChanged:
                # its task starts again with the new certificate
                self._cars.renew(car, await certificate_of(car))
                raise CarFault(STATION_CERTIFICATE) from None
            finally:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)
                self._note_round(pull, state)
                if pull.round.listed is not None:
                    self.inventory.update(car.folder, pull.round.listed, everything)
                _note_bytes(pull.round, state, begun)

    def _note_round(self, pull: Pull, state: CarState) -> None:
        """Copy the result of a round into the state, also after a fault."""
        result, now_s = pull.round, self._utc_s()
        state.seen_s = now_s if pull.answered else state.seen_s
        state.rate = 0.0
        # Segments that fail in one round go last in the next, all of them.
        state.bad = {**state.bad, **result.bad} if pull.answered else {}
        if result.waiting is not None:
            self._set_waiting(state, result.waiting)
        if result.stored:
            state.stored_s = now_s
        state.stored += len(result.stored)
        if result.removed and len(result.removed) != state.removed:
            log.warning(
                "%s: %d segments were removed here before the car had their receipt "
                "(%s): the car keeps them until they are deleted on its page",
                state.folder,
                len(result.removed),
                result.removed[0],
            )
        if pull.answered:
            state.held, state.removed, state.late = result.held, len(result.removed), result.late

    async def _update_state(self, pull: Pull, state: CarState, begun: int) -> None:
        """Update the state during a round."""
        stored, rate = 0, Rate()
        while True:
            await asyncio.sleep(0.5)
            _note_bytes(pull.round, state, begun)
            state.rate = rate.add(state.bytes, time.monotonic())
            if len(pull.round.stored) > stored:
                stored, state.stored_s = len(pull.round.stored), self._utc_s()
            if pull.round.waiting:
                state.state = FETCHING
                self._set_waiting(state, pull.round.waiting)

    def _set_waiting(self, state: CarState, waiting: int) -> None:
        if not (waiting and state.waiting):  # a car that comes back gets the full period, too
            state.stored_s = self._utc_s()
        state.waiting = waiting

    def _set_state(self, state: CarState, fault: Text | None) -> None:
        if fault:
            if fault != state.last_fault:
                log.warning("%s: %s", state.folder, fault)
            state.last_fault, state.fault_s = fault, self._utc_s()
        state.state = fault or "ok"

    async def _run_blocking(self, function: Callable[..., Any], *arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._disk, function, *arguments)


def _note_bytes(result: Round, state: CarState, begun: int) -> None:
    """Update the byte counts: `begun` is the count before this round."""
    state.bytes, state.waiting_bytes = begun + result.bytes, result.waiting_bytes
    if result.card[1]:
        state.card_free, state.card_total = result.card


def _fault_of(result: Round) -> Text | None:
    """Return the fault of a round."""
    if not result.bad:
        return None
    name, reason = next(iter(result.bad.items()))
    return STATION_FAILED(count=segments(len(result.bad)), name=name, reason=reason)
