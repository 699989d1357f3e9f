"""A car, two stations, an office and all that fails between them, from a seed.

Nothing runs by itself: `World.run` lets one station after the other take one step, and
between steps kills it, cuts its power, fills its disk, or lets the car's ring work.
"""

import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from random import Random
from typing import Any

from fpvstation.copies import COPIES, SUFFIX, Copies
from fpvstation.due import SETTLED_S
from fpvstation.identity import StoreError
from fpvstation.offices import Offices
from fpvstation.pull import CarFault, Pull
from fpvstation.relay import OfficeFault, Relay
from fpvstation.store import Store
from fpvstation.sums_file import SUMS_FILE, listing_of
from fpvstation.turns import Turns
from tests.rigs.station_disk import FakeDisk, Killed, hash_of, published, sums_of
from tests.rigs.station_links import OFFICE, FakeCar, FakeOffice, Link, OfficeLink, Step

STEPS_CHAOS, STEPS_MOST = 600, 30_000


async def act(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls what would block in a thread."""
    await Step()
    return function(*arguments)


class Side:
    """What a station does beside its round: an asyncio.Task without a loop."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work, self.done = work, False
        self._fault: BaseException | None = None

    def step(self) -> None:
        """One step; it may be its last. Raises Killed."""
        try:
            self._work.send(None)
        except StopIteration:
            self.done = True
        except Exception as fault:
            self.done, self._fault = True, fault

    def cancel(self) -> None:
        """It does nothing more."""
        if not self.done:
            self.done, self._fault = True, Killed()
            self._work.close()

    def __await__(self) -> Generator[None, None, None]:
        while not self.done:
            yield
        if self._fault is not None:
            raise self._fault


class Station:
    """A station that is started again whatever ends it."""

    def __init__(self, car: FakeCar, office: FakeOffice, random: Random) -> None:
        self.disk, self._random = FakeDisk(random), random
        self._car, self._office, self._id = car, office, ""
        self._running: Side | None = None
        self._sides: list[Side] = []
        self.rounds_well = 0
        """How many rounds in a row nothing failed."""
        self.rotten = set[str]()
        """Checksums of what its disk lost after the office had it."""
        self.bent = set[str]()
        """What they became: a power cut may bring it back, without its line."""
        self._now_s = 0.0

    def _clock_s(self) -> float:
        self._now_s += SETTLED_S / 2
        return self._now_s

    async def _work(self) -> None:
        way, copies = OfficeLink(self._office, self.disk), Copies(self.disk)
        offices = Offices([way], self._car.copies_required, copies)
        store = Store(self.disk, lambda session: relay.tell(session))
        relay = Relay(way, store, copies, act, self._clock_s)
        self._id = store.open(self._id)
        link = Link(self._car, self.disk, self._office)
        while True:
            pull = Pull(
                link, store, "Plague", act, Turns(), offices.safe, self._begin
            )  # fmt: skip
            everything = self._random.random() < 0.3
            try:
                done = await pull.once(everything)
                await relay.once(everything)
                well = everything and not (done.bad or done.held or relay.state.waiting)
                self.rounds_well += well
                if done.bad or relay.state.bad:
                    self.rounds_well = 0
            except (CarFault, OfficeFault, StoreError, OSError):
                self.rounds_well = 0
            await Step()

    def rot(self) -> None:
        """The disk bends a segment that the office has, and a scrub finds it."""
        store, copies = Store(self.disk), Copies(self.disk)
        store.open(self._id)
        for one in store.segments():
            record = f"{COPIES}/{one.path.rpartition('/')[0]}{SUFFIX}"
            kept = self.disk.names_synced.get(record)
            inode = self.disk.names_now[one.path]
            if (
                copies.places(one, [OFFICE], time.time()) and inode.data
                and kept is self.disk.names_now[record]
            ):  # fmt: skip
                inode.data[0] ^= 1
                inode.synced = bytes(inode.data)
                self.bent.add(hash_of(inode.data))
                assert store.judge(one)
                self.rotten.add(one.sha256)
                self.rounds_well = 0
                return

    @property
    def store_id(self) -> str:
        """Which store is its own."""
        return self._id

    @property
    def opened(self) -> bool:
        """Does it know which store is its own?"""
        return bool(self._id)

    def _begin(self, work: Coroutine[Any, Any, None]) -> Side:
        self._sides.append(Side(work))
        return self._sides[-1]

    def step(self) -> None:
        """One step of what it does, or of what it does beside that."""
        if self._running is None:
            self._running = Side(self._work())
        self._sides = [one for one in self._sides if not one.done]
        try:
            self._random.choice([self._running, *self._sides]).step()
        except Killed:
            self.kill()
        if self._running is not None and self._running.done:
            self.kill()

    def kill(self) -> None:
        """kill -9: nothing that it would do at its end is done."""
        disk, self.disk.kill = self.disk, 1.0
        for one in [*self._sides, *filter(None, [self._running])]:
            with suppress(Killed):
                one.cancel()
        disk.kill = 0.0
        self._running, self._sides, self.rounds_well = None, [], 0


class World:
    """A schedule, from its seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.car = FakeCar(self.random)
        self.car.copies_required = self.random.choice([1, 2])
        self.office = FakeOffice(self.random)
        self.stations = [
            Station(self.car, self.office, self.random) for _ in range(2)
        ]  # fmt: skip

    def run(self) -> None:
        """Chaos; then peace, in which all has to come home, and once more what rots."""
        try:
            self._run()
        finally:
            for one in self.stations:
                one.kill()

    def _run(self) -> None:
        for _ in range(STEPS_CHAOS):
            self._happens()
            self.random.choice(self.stations).step()
            self.check_nothing_lost()
        self._until_home()
        for station in self.stations:
            station.kill()
            station.rot()
        self._until_home()
        for station in self.stations:
            self.check(station)
            self.check_office(station)

    def _until_home(self) -> None:
        self._peace()
        for _ in range(STEPS_MOST):
            if self._home():
                return
            self.random.choice(self.stations).step()
        raise AssertionError("it does not end")

    def check_office(self, station: Station) -> None:
        """All that is stored got there, and what rotted is back."""
        for one in Store(station.disk).segments():
            path = f"{station.store_id}/{one.path}"
            assert hash_of(self.office.files[path]) == one.sha256, path
        for sha256 in station.rotten:
            assert station.disk.durable(sha256), f"{sha256[:8]} did not come back"

    def _happens(self) -> None:
        """Something that nobody asked for."""
        random, station = self.random, self.random.choice(self.stations)
        for one in self.stations:
            one.disk.kill, one.disk.full = 0.004, random.choice([0.0, 0.0, 0.02])
        self.car.faults = random.choice([0.0, 0.02, 0.2])
        self.office.faults = random.choice([0.0, 0.02, 1.0])
        what = random.random()
        if what < 0.06:
            self.car.record()
        elif what < 0.10:
            self.car.let_go()
        elif what < 0.12:
            station.kill()
            self.check(station)
        elif what < 0.14:
            station.kill()
            station.disk.cut_power()
            self.check(station)
        elif what < 0.15 and station.opened:
            station.disk.unmount()
        elif what < 0.20:
            station.disk.mount()
        elif what < 0.21 and station.opened:
            station.disk.lost_by_sync = 1
        elif what < 0.25 and station.opened and station.disk.mounted:
            station.kill()
            station.disk.kill = station.disk.full = 0.0
            station.disk.lost_by_sync = 0
            station.rot()

    def _peace(self) -> None:
        self.car.faults = self.office.faults = 0.0
        for one in self.stations:
            one.disk.kill = one.disk.full = 0.0
            one.disk.lost_by_sync = one.rounds_well = 0
            one.disk.mount()

    def _home(self) -> bool:
        waits = self.car.files.keys() - self.car.fetched
        return not waits and all(one.rounds_well >= 2 for one in self.stations)

    # --- what has to hold at every moment ---

    def check_nothing_lost(self) -> None:
        """Every segment is on the car, or in a store that survives a power cut."""
        there = {hash_of(one) for one in self.car.files.values()}
        for sha256 in self.car.recorded - there:
            stored = any(one.disk.durable(sha256) for one in self.stations)
            assert stored or self.office.has(sha256), "lost"

    def check(self, station: Station) -> None:
        """What is published is right, once, and listed with its own checksum."""
        disk, seen = station.disk, list[tuple[str, str]]()
        for path, inode in disk.names_now.items():
            if published(path):
                name, sha256 = path.rpartition("/")[2], hash_of(inode.data)
                seen.append((name, sha256))
                if sha256 not in station.bent:
                    assert sha256 in self.car.recorded, f"{path} is wrong"
        assert len(seen) == len(set(seen)), "a segment is in the store twice"
        for path, inode in disk.names_now.items():
            if path.endswith(f"/{SUMS_FILE}"):
                listing = listing_of(path.rpartition("/")[0], bytes(inode.data))
                assert not listing.damaged
                for listed, sha256 in listing.lines:
                    assert sums_of(disk.read(listed)).sha256 == sha256
