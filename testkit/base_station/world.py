"""Two cars, two stations, an office and all faults between them, from a seed.

`World.run` alone causes each event: it lets one station after the other take one step. Between
steps it kills a station, cuts its power, fills its disk, damages a list, lets a car's ring work, or
lets the office lose a bit of data that another copy still has.
"""

from collections.abc import Coroutine, Sequence
from contextlib import suppress
from random import Random
from typing import Any

from fpvstation.errors import StationError
from fpvstation.fetch.fair_slots import FairSemaphore
from fpvstation.fetch.pull import CarFault, Pull
from fpvstation.replicas.pending import SETTLED_S
from fpvstation.replicas.remote import PlaceFault
from fpvstation.replicas.remotes import Remotes
from fpvstation.replicas.replicate import Replicator
from fpvstation.store.audit import KEPT, UNLISTED
from fpvstation.store.bound import Bound
from fpvstation.store.replica_log import COPIES, DAY_S, SUFFIX, ReplicaLog
from fpvstation.store.store import Store
from fpvstation.store.sums_file import SUMS_FILE, StoredSegment, listing_of
from fpvstation.store.verify import Verdict, verify
from testkit.base_station.disk import FakeDisk, Killed, hash_of, published, sums_of
from testkit.base_station.links import OFFICE, FakeCar, FakeOffice, Link, OfficeLink, Step
from testkit.base_station.side import Side, act

STEPS_CHAOS, STEPS_CALM, STEPS_MOST, LOOK_EACH = 600, 60, 30_000, 3
ROTS, LOOK_HOME_EACH = 3, 25
NOW_S = 1.8e9
"""UTC of a clock that is right."""


class Station:
    """Station that is restarted after any end."""

    def __init__(self, cars: Sequence[FakeCar], office: FakeOffice, random: Random) -> None:
        self.disk, self._random = FakeDisk(random), random
        self._cars, self._office, self.store_id = cars, office, ""
        self._running: Side | None = None
        self._sides: list[Side] = []
        self.rounds_well = 0
        """Number of successive rounds without a failure."""
        self.rotten = set[str]()
        """Checksums of segments that its disk lost after the office had them."""
        self.bent = set[str]()
        """New checksums of these: a power cut may bring them back, without a line."""
        self.thorough = 0.3
        """Share of rounds that check the whole store."""
        self.damaged = False
        """Flag of a list damaged since the last `verify`."""
        self.utc_s = random.choice([0.0, NOW_S])
        self._most = random.choice([0, 300, 1000])
        """Bytes that its bound allows; 0 for no bound."""
        self._now_s = 0.0
        self.disk.utc_s = lambda: self.utc_s

    def _clock_s(self) -> float:
        self._now_s += SETTLED_S / 2
        return self._now_s

    def _utc_s(self) -> float:
        return self.utc_s

    async def _work(self) -> None:
        way, copies = OfficeLink(self._office, self.disk), ReplicaLog(self.disk)
        remotes = Remotes([way], self._cars[0].copies_required, copies, utc_s=self._utc_s)
        store = Store(self.disk, lambda session: replicator.queue(session), self._utc_s)
        replicator = Replicator(way, store, copies, act, self._clock_s, self._utc_s)
        bound = Bound(
            store, self.disk, copies, self._most, [OFFICE], replicator.verify_soon, self._utc_s
        )
        self.store_id = store.open(self.store_id)
        links = [Link(car, self.disk, self._office) for car in self._cars]
        while True:
            everything, well = self._random.random() < self.thorough, True
            try:
                for link, car in zip(links, self._cars, strict=True):
                    pull = Pull(
                        link, store, car.name, act, FairSemaphore(), remotes.safe, self._begin
                    )
                    done = await pull.once(everything)
                    well = well and not (done.bad or done.held)
                await replicator.once(everything)
                if self._most and self._random.random() < 0.3:
                    await act(lambda: list(bound.run()))
                well = well and not (replicator.state.waiting or replicator.state.bad)
                self.rounds_well = self.rounds_well + everything if well else 0
            except (CarFault, PlaceFault, StationError, OSError):
                self.rounds_well = 0
            await Step()

    def rot(self) -> None:
        """Damage a segment that the office has, and let a scrub find it."""
        store, copies = Store(self.disk), ReplicaLog(self.disk)
        store.open(self.store_id)
        for one in store.segments():
            record = f"{COPIES}/{one.path.rpartition('/')[0]}{SUFFIX}"
            kept = self.disk.names_synced.get(record)
            inode = self.disk.names_now.get(one.path)
            path = f"{self.store_id}/{one.path}"
            if (
                inode
                and inode.data
                and copies.count(one, [OFFICE], self.utc_s)
                and hash_of(self._office.files.get(path, b"")) == one.sha256
                and hash_of(inode.data) == one.sha256
                and kept is self.disk.names_now[record]
            ):
                inode.data[0] ^= 1
                inode.synced = bytes(inode.data)
                self.bent.add(hash_of(inode.data))
                assert store.verify_segment(one)
                self.rotten.add(one.sha256)
                self.rounds_well = 0
                return

    def damage_list(self) -> bool:
        """Flip a bit of a list, cut it, or lose it. Returns False if no line changes."""
        lists = [
            path
            for path, inode in self.disk.names_now.items()
            if path.endswith(f"/{SUMS_FILE}") and inode.data and not path.startswith(".")
        ]
        if not lists:
            return False
        path = self._random.choice(sorted(lists))
        before = bytes(self.disk.names_now[path].data)
        data = bytearray(before)
        what = self._random.random()
        if what < 0.6:
            data[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)
        elif what < 0.8:
            del data[self._random.randrange(len(data)) :]
        kept = bytes(data) if what < 0.8 else b""
        self.disk.damage(path, kept or None)
        self.damaged = True
        return kept.rstrip(b"\n") != before.rstrip(b"\n")

    def verify(self) -> list[Verdict]:
        """Return the faults that `fpvstation verify` names."""
        store = Store(self.disk, utc_s=self._utc_s)
        store.open(self.store_id)
        found = verify(store, self.disk, sorted(store.known()), 1e9, utc_s=self._utc_s)
        faults = [one for one in found if one.fault]
        self.damaged = False
        self.check_named(store, faults)
        return faults

    def check_named(self, store: Store, faults: Sequence[Verdict]) -> None:
        """Check that every published file has its line, or is reported."""
        listed = set(store.segments())
        named = {one.path for one in faults}
        for path, inode in self.disk.names_now.items():
            if published(path):
                line = StoredSegment(path, hash_of(inode.data))
                assert line in listed or path in named, f"{path} is named nowhere"

    def _begin(self, work: Coroutine[Any, Any, None]) -> Side:
        self._sides.append(Side(work))
        return self._sides[-1]

    def step(self) -> None:
        """Run one step of its round, or of a side task."""
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
        """Kill with SIGKILL: no clean-up is done."""
        disk, self.disk.kill = self.disk, 1.0
        for one in [*self._sides, *filter(None, [self._running])]:
            with suppress(Killed):
                one.cancel()
        disk.kill = 0.0
        self._running, self._sides, self.rounds_well = None, [], 0


class World:
    """Schedule, generated from its seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cars = [FakeCar(self.random, name) for name in ("Plague", "Arrow")]
        required = self.random.choice([1, 2])
        for car in self.cars:
            car.copies_required = required
        self.office = FakeOffice(self.random)
        self._steps, self._calm = 0, False
        self.stations = [Station(self.cars, self.office, self.random) for _ in range(2)]

    def run(self) -> None:
        """Run chaos; then peace, in which all recordings must reach the office; then rot again."""
        try:
            self._run()
        finally:
            for one in self.stations:
                one.kill()

    def _run(self) -> None:
        for number in range(STEPS_CHAOS):
            self._happens()
            self.random.choice(self.stations).step()
            if number % LOOK_EACH == 0:
                self.check_nothing_lost()
        self._until_home()
        for station in self.stations:
            station.kill()
            station.rot()
            station.verify()
        for _ in range(ROTS):
            self._rot_office()
        self._time(8.0)
        self._until_home()
        for station in self.stations:
            station.kill()
            faults = station.verify()
            assert {one.done for one in faults} <= {KEPT, UNLISTED}, faults
            self.check(station)
            self.check_office(station)

    def _until_home(self) -> None:
        self._peace()
        for number in range(STEPS_MOST):
            if number % LOOK_HOME_EACH == 0:
                self.check_nothing_lost()
                if self._home():
                    return
            self.random.choice(self.stations).step()
        raise AssertionError("it does not end")

    def check_office(self, station: Station) -> None:
        """Check that all stored segments reached the office, and rotted ones are restored."""
        for one in Store(station.disk).segments():
            path = f"{station.store_id}/{one.path}"
            assert hash_of(self.office.files[path]) == one.sha256, path
        for car in self.cars:
            for sha256 in car.recorded & station.rotten:
                there = station.disk.durable(sha256) or self.office.has(sha256)
                assert there, f"{sha256[:8]} did not come back"

    def _happens(self) -> None:
        """Let an event happen that the program does not cause."""
        random, station = self.random, self.random.choice(self.stations)
        self._weather()
        car = random.choice(self.cars)
        what = random.random()
        if what < 0.06:
            car.record()
        elif what < 0.10:
            car.let_go()
        elif what < 0.12:
            self._time(random.uniform(0.0, 3.0))
        elif what < 0.13:
            station.utc_s = max(station.utc_s, NOW_S)  # its clock is set
        elif what < 0.15:
            self._rot_office()
        elif what < 0.16 and station.store_id and station.disk.mounted:
            self._damage(station)
        elif what < 0.20:
            station.disk.mount()
        elif not self._calm and what < 0.32:
            self._fails(station, what - 0.20)

    def _weather(self) -> None:
        """Choose the rate of faults of the next steps; in calm times there are no random ones."""
        random, self._steps = self.random, self._steps + 1
        if self._steps % STEPS_CALM == 1:
            self._calm = random.random() < 0.5
        for one in self.stations:
            one.disk.kill, one.disk.full = 0.004, random.choice([0.0, 0.0, 0.02])
        for car in self.cars:
            car.faults = random.choice([0.0, 0.02, 0.2])
        self.office.faults = random.choice([0.0, 0.02, 1.0])
        if self._calm:
            self._faultless()

    def _faultless(self) -> None:
        self.office.faults = 0.0
        for car in self.cars:
            car.faults = 0.0
        for one in self.stations:
            one.disk.kill = one.disk.full = 0.0

    def _fails(self, station: Station, what: float) -> None:
        """Fail a station or its disk; `what` is 0 to 0.12."""
        if what < 0.03:
            station.kill()
            self.check(station)
        elif what < 0.05:
            station.kill()
            station.disk.cut_power()
            self.check(station)
        elif what < 0.06 and station.store_id:
            station.disk.unmount()
        elif what < 0.08 and station.store_id:
            station.disk.lost_by_sync = 1
        elif station.store_id and station.disk.mounted:
            station.kill()
            station.disk.kill = station.disk.full = 0.0
            station.disk.lost_by_sync = 0
            station.rot()

    def _time(self, days: float) -> None:
        for one in self.stations:
            one.utc_s += days * DAY_S

    def _damage(self, station: Station) -> None:
        """Damage a list; a scrub may come before the station continues."""
        station.kill()
        station.disk.kill = station.disk.full = 0.0
        station.disk.lost_by_sync = 0
        changed = station.damage_list()
        if self.random.random() < 0.5:
            assert station.verify() or not changed, "a damaged list is not named"
            self.check_nothing_lost()

    def _rot_office(self) -> None:
        """Let the office lose a bit of a file that the store itself has, too. No copy rots
        within a day after its verification."""
        for station in self.stations:
            head = f"{station.store_id}/"
            for path, data in self.office.files.items():
                here = path.removeprefix(head)
                inode = station.disk.names_synced.get(here)
                if (
                    here != path
                    and station.disk.mounted
                    and not station.damaged
                    and inode is station.disk.names_now.get(here)
                    and inode
                    and inode.synced == data == bytes(inode.data)
                    and station.disk.durable(hash_of(data))
                ):
                    self.office.rot(path)
                    self._time(2.0)
                    return

    def _peace(self) -> None:
        self._faultless()
        for one in self.stations:
            one.utc_s = max(one.utc_s, NOW_S)
            one.disk.lost_by_sync = one.rounds_well = 0
            one.thorough = 0.8
            one.disk.mount()

    def _home(self) -> bool:
        waits = any(car.files.keys() - car.fetched for car in self.cars)
        return not waits and all(
            one.rounds_well >= 2 and self._at_office(one) for one in self.stations
        )

    def _at_office(self, station: Station) -> bool:
        """Return True if the office has all of a store, with the right bytes."""
        return all(
            hash_of(self.office.files.get(f"{station.store_id}/{path}", b"?")) == sha256
            for path, sha256 in Store(station.disk).segments()
        )

    # --- invariants at every moment ---

    def check_nothing_lost(self) -> None:
        """Check that every segment is on its car, at the office, or in a store that survives a
        power cut; damaged lists there are reported."""
        office = {hash_of(data) for data in self.office.files.values()}
        for car in self.cars:
            there = {hash_of(data) for data in car.files.values()}
            for sha256 in car.recorded - there - office:
                assert any(one.disk.holds(sha256) for one in self.stations), "lost"

    def check(self, station: Station) -> None:
        """Check that published files are right, unique, and listed with their own checksum."""
        disk, seen = station.disk, list[tuple[str, str]]()
        for path, inode in disk.names_now.items():
            if published(path):
                name, sha256 = path.rpartition("/")[2], hash_of(inode.data)
                seen.append((name, sha256))
                if sha256 not in station.bent:
                    recorded = any(sha256 in car.recorded for car in self.cars)
                    assert recorded, f"{path} is wrong"
        assert len(seen) == len(set(seen)), "a segment is in the store twice"
        for path, inode in disk.names_now.items():
            if path.endswith(f"/{SUMS_FILE}") and not station.damaged:
                listing = listing_of(path.rpartition("/")[0], bytes(inode.data))
                for listed, sha256 in listing.lines:
                    assert sums_of(disk.read(listed)).sha256 == sha256
