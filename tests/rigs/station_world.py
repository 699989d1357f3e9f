"""A car, two stations, an office and all that fails between them, from a seed.

Nothing runs by itself: `World.run` lets one station after the other take one step, and
between steps kills it, cuts its power, fills its disk, or lets the car's ring work.
"""

import errno
import hashlib
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fpvcar.recordings import names
from fpvcar.recordings.sums import Summing
from fpvcar.wire.station import Listing, Segment, Sums
from fpvstation.copies import COPIES, SUFFIX, Copies
from fpvstation.due import SETTLED_S
from fpvstation.identity import StoreError
from fpvstation.offices import Offices
from fpvstation.pull import CarFault, Gone, Pull
from fpvstation.relay import OfficeFault, Relay, Tell
from fpvstation.store import LINE, SUMS_FILE, Store, Stored
from fpvstation.turns import Turns

STEPS_CHAOS, STEPS_MOST = 600, 30_000
PIECE = 64
"""Bytes; the world's pieces are small, so that it is fast."""


class Killed(BaseException):
    """The process ends here, whatever it was about to do."""


class Step:
    """What is awaited is a step of the world."""

    def __await__(self) -> Generator[None, None, None]:
        yield


def _hash(data: bytes | bytearray) -> str:
    return hashlib.sha256(data).hexdigest()


def sums_of(data: bytes) -> Sums:
    """Checksums of these bytes."""
    summing = Summing()
    summing.add(data)
    return summing.sums()


@dataclass
class Inode:
    """A file: as programs see it, and as a power cut leaves it."""

    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""


class FakeDisk:
    """A disk that forgets what was not synced, fills up, and is killed at any call."""

    def __init__(self, random: Random) -> None:
        self.names_now: dict[str, Inode] = {}
        self.names_synced: dict[str, Inode] = {}
        self._unmounted: dict[str, Inode] | None = None
        self.kill = self.full = 0.0
        """How likely a call ends the process, or finds no room."""
        self._random = random

    def _fault(self) -> None:
        if self._random.random() < self.kill:
            raise Killed
        if self._random.random() < self.full:
            raise OSError(errno.ENOSPC, "No space left on device")

    @property
    def mounted(self) -> bool:
        """Is it there?"""
        return self._unmounted is None

    def unmount(self) -> None:
        """Programs see the empty folder below it."""
        if self._unmounted is None:
            self._unmounted, self.names_now = self.names_now, {}

    def mount(self) -> None:
        """It is there again, with all that it had."""
        if self._unmounted is not None:
            assert not self.names_now, "the folder below the disk got bytes"
            self.names_now, self._unmounted = self._unmounted, None

    def cut_power(self) -> None:
        """What was not synced is there, or not, or half of it."""
        self.mount()
        for path, inode in list(self.names_now.items()):
            if self.names_synced.get(path) is not inode and self._random.random() < 0.5:
                self.names_synced[path] = inode
        self.names_now = dict(self.names_synced)
        for inode in self.names_now.values():
            if bytes(inode.data) != inode.synced:
                left = bytearray(inode.data[: self._random.randint(0, len(inode.data))])
                if left and self._random.random() < 0.5:
                    left[self._random.randrange(len(left))] = 0
                inode.data = self._random.choice([bytearray(inode.synced), left])
            inode.synced = bytes(inode.data)

    def durable(self, sha256: str) -> bool:
        """Would a published file of these bytes, and its line, survive a power cut?"""
        now = self.names_now if self._unmounted is None else self._unmounted
        return any(
            _hash(inode.synced) == sha256 and sha256.encode() in self._sums_beside(path)
            for path, inode in self.names_synced.items()
            if published(path) and now.get(path) is inode
        )

    def _sums_beside(self, path: str) -> bytes:
        beside = f"{path.rpartition('/')[0]}/{SUMS_FILE}"
        return self.names_synced.get(beside, Inode()).synced

    # --- Disk ---

    def read(self, path: str) -> bytes:
        return bytes(self._inode(path).data)

    def size(self, path: str) -> int | None:
        inode = self.names_now.get(path)
        return None if inode is None else len(inode.data)

    def changed_s(self, path: str) -> float:
        return 0.0

    def sums(self, path: str) -> Sums:
        self._fault()
        return sums_of(bytes(self._inode(path).data))

    def write_at(self, path: str, at: int, data: bytes) -> None:
        inode = self.names_now.setdefault(path, Inode())
        inode.data.extend(bytes(max(0, at - len(inode.data))))
        half = self._random.randint(0, len(data))
        inode.data[at : at + half] = data[:half]
        self._fault()
        inode.data[at : at + len(data)] = data

    def sync(self, path: str) -> None:
        self._fault()
        inode = self._inode(path)
        inode.synced = bytes(inode.data)
        self._fault()
        self.names_synced[path] = inode

    def publish(self, old: str, new: str) -> None:
        self._fault()
        if new in self.names_now:
            raise FileExistsError(errno.EEXIST, "File exists", new)
        self.names_now[new] = self._inode(old)
        self._fault()
        del self.names_now[old]

    def replace(self, path: str, data: bytes) -> None:
        self._fault()
        inode = Inode(bytearray(data), data)
        self.names_now[path] = inode
        self._fault()
        self.names_synced[path] = inode

    def remove(self, path: str) -> None:
        self._fault()
        self.names_now.pop(path, None)

    def prune(self, path: str) -> None:
        """It has no folders."""

    def names(self, path: str) -> list[str]:
        head = f"{path}/" if path else ""
        inside = [one for one in self.names_now if one.startswith(head)]
        return sorted({one[len(head) :].partition("/")[0] for one in inside})

    def changing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _inode(self, path: str) -> Inode:
        try:
            return self.names_now[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, "No such file", path) from None


def published(path: str) -> bool:
    """Is this a segment that has its place?"""
    return not path.startswith(".") and path.endswith(names.SEALED)


@dataclass
class FakeCar:
    """A car with a ring that lets go of what has a receipt, and nothing else."""

    random: Random
    faults: float = 0.0
    files: dict[str, bytes] = field(default_factory=dict)
    fetched: set[str] = field(default_factory=set)
    recorded: set[str] = field(default_factory=set)
    """Checksums of all that was ever recorded."""
    copies_required: int = 1

    def record(self) -> None:
        """Another minute; a clock that jumps may give it a name that was used."""
        day = self.random.randint(1, 3)
        number = self.random.randint(1, 9)
        name = f"Plague-197001{day:02d}T000010Z-{number:04d}.mcap"
        if name not in self.files:
            data = self.random.randbytes(self.random.choice([0, 1, 63, 64, 65, 400]))
            self.files[name] = data
            self.recorded.add(_hash(data))

    def let_go(self) -> None:
        """The ring makes room."""
        for name in sorted(self.fetched)[: self.random.randint(0, 2)]:
            self.fetched.discard(name)
            del self.files[name]


OFFICE = "office:/store"


@dataclass
class FakeOffice:
    """A file server that has each file whole or not, as rdcp leaves it."""

    random: Random
    faults: float = 0.0
    files: dict[str, bytes] = field(default_factory=dict)

    def has(self, sha256: str) -> bool:
        """Are these bytes there?"""
        return any(_hash(data) == sha256 for data in self.files.values())


class Link:
    """The car as one station sees it, over a link that fails."""

    def __init__(self, car: FakeCar, disk: FakeDisk, office: FakeOffice) -> None:
        self._car, self._disk, self._random = car, disk, car.random
        self._office = office

    async def _way(self) -> None:
        await Step()
        if self._random.random() < self._car.faults:
            for _ in range(self._random.randint(0, 9)):  # it stalls first
                await Step()
            raise CarFault("the link was cut")

    async def listing(self, after: str, everything: bool) -> Listing:
        await self._way()
        car = self._car
        found = [
            Segment(name, len(data), name in car.fetched)
            for name, data in sorted(car.files.items())
            if name > after and (everything or name not in car.fetched)
        ]
        await self._way()  # it is old by the time it comes
        most = self._random.randint(1, 4)
        return Listing("Plague", found[:most], len(found) > most)

    async def sums(self, name: str) -> Sums:
        await self._way()
        return sums_of(self._data(name))

    def pieces(self, name: str, sums: Sums, first: int, last: int) -> "Pieces":
        return Pieces(self, name, sums, first, last)

    async def receipt(self, name: str, sha256: str) -> None:
        await self._way()
        if _hash(self._data(name)) != sha256:
            raise Gone
        assert self._disk.durable(sha256), f"a receipt for {name} without its bytes"
        if self._car.copies_required > 1:
            assert self._office.has(sha256), f"a receipt for {name} without a copy"
        self._car.fetched.add(name)
        await self._way()  # it was taken, and the answer is lost

    def _data(self, name: str) -> bytes:
        if name not in self._car.files:
            raise Gone
        return self._car.files[name]

    async def piece(self, name: str, sums: Sums, number: int) -> bytes:
        await self._way()
        data = self._data(name)
        if _hash(data) != sums.sha256:
            raise Gone
        piece = bytearray(data[number * PIECE : (number + 1) * PIECE])
        if self._random.random() < self._car.faults:
            piece[self._random.randrange(len(piece))] ^= 1 << self._random.randrange(8)
        if self._random.random() < self._car.faults:
            del piece[self._random.randrange(len(piece)) :]
        return bytes(piece)


@dataclass
class Pieces:
    """An async iterator, as no event loop is here to end a generator."""

    link: Link
    name: str
    sums: Sums
    number: int
    last: int

    def __aiter__(self) -> "Pieces":
        return self

    async def aclose(self) -> None:
        pass

    async def __anext__(self) -> bytes:
        if self.number > self.last:
            raise StopAsyncIteration
        self.number += 1
        return await self.link.piece(self.name, self.sums, self.number - 1)


class OfficeLink:
    """The office as one station sees it: cut, full, or killed midway."""

    place = OFFICE

    def __init__(self, office: FakeOffice, disk: FakeDisk) -> None:
        self._office, self._disk = office, disk

    async def _way(self) -> None:
        await Step()
        if self._office.random.random() < self._office.faults:
            raise OfficeFault("it is full, or away")

    async def claim(self, store: str, known: bool) -> None:
        await self._way()
        self._home = f"{store}/"  # each store has a folder of its own

    async def send(
        self, session: str, listed: list[Stored], anew: bool, tell: Tell
    ) -> None:
        for one in listed:
            await self._way()
            path = self._home + one.path
            if anew or path not in self._office.files:
                self._office.files[path] = self._disk.read(one.path)
        await self._way()

    async def check(self, session: str, listed: list[Stored]) -> list[str]:
        await self._way()
        there = self._office.files
        return [
            one.path for one in listed
            if _hash(there.get(self._home + one.path, b"?")) != one.sha256
        ]  # fmt: skip

    async def fetch(self, session: str, tell: Tell) -> dict[str, str]:
        found = {}
        for path, data in list(self._office.files.items()):
            if path.startswith(f"{self._home}{session}/"):
                await self._way()
                name = path.rpartition("/")[2]
                found[name] = f".incoming/office/{name}"
                if not self._disk.mounted:  # a disk that is busy stays, but this one
                    raise OfficeFault("the disk is gone")
                self._disk.remove(found[name])
                self._disk.write_at(found[name], 0, data)
        await self._way()
        return found


async def act(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls what would block in a thread."""
    await Step()
    return function(*arguments)


class Station:
    """A station that is started again whatever ends it."""

    def __init__(self, car: FakeCar, office: FakeOffice, random: Random) -> None:
        self.disk, self._random = FakeDisk(random), random
        self._car, self._office, self._id = car, office, ""
        self._running: Coroutine[Any, Any, None] | None = None
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
            pull = Pull(link, store, "Plague", act, Turns(), offices.safe)
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
                copies.places(one, [OFFICE]) and inode.data
                and kept is self.disk.names_now[record]
            ):  # fmt: skip
                inode.data[0] ^= 1
                inode.synced = bytes(inode.data)
                self.bent.add(_hash(inode.data))
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

    def step(self) -> None:
        """One step; it may be its last."""
        if self._running is None:
            self._running = self._work()
        try:
            self._running.send(None)
        except (Killed, StoreError, OSError):
            self.kill()

    def kill(self) -> None:
        """kill -9: nothing that it would do at its end is done."""
        if self._running is not None:
            disk, self.disk.kill = self.disk, 1.0
            with suppress(Killed):
                self._running.close()
            disk.kill = 0.0
        self._running, self.rounds_well = None, 0


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
            assert _hash(self.office.files[path]) == one.sha256, path
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
        elif what < 0.24 and station.opened and station.disk.mounted:
            station.kill()
            station.disk.kill = station.disk.full = 0.0
            station.rot()

    def _peace(self) -> None:
        self.car.faults = self.office.faults = 0.0
        for one in self.stations:
            one.disk.kill = one.disk.full = 0.0
            one.rounds_well = 0
            one.disk.mount()

    def _home(self) -> bool:
        waits = self.car.files.keys() - self.car.fetched
        return not waits and all(one.rounds_well >= 2 for one in self.stations)

    # --- what has to hold at every moment ---

    def check_nothing_lost(self) -> None:
        """Every segment is on the car, or in a store that survives a power cut."""
        there = {_hash(one) for one in self.car.files.values()}
        for sha256 in self.car.recorded - there:
            stored = any(one.disk.durable(sha256) for one in self.stations)
            assert stored or self.office.has(sha256), "lost"

    def check(self, station: Station) -> None:
        """What is published is right, once, and listed with its own checksum."""
        disk, seen = station.disk, list[tuple[str, str]]()
        for path, inode in disk.names_now.items():
            if published(path):
                name, sha256 = path.rpartition("/")[2], _hash(inode.data)
                seen.append((name, sha256))
                if sha256 not in station.bent:
                    assert sha256 in self.car.recorded, f"{path} is wrong"
        assert len(seen) == len(set(seen)), "a segment is in the store twice"
        for path, inode in disk.names_now.items():
            if path.endswith(f"/{SUMS_FILE}"):
                for line in bytes(inode.data).decode().splitlines():
                    found = LINE.fullmatch(line)
                    assert found is not None
                    listed = path.replace(SUMS_FILE, found[2])
                    assert sums_of(disk.read(listed)).sha256 == found[1]
