"""Car and office, and the links to them, which fail at random."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from random import Random

from fpvcar.wire.station import Listing, Segment, Sums
from fpvstation.fetch.pull import CarFault, SegmentGone
from fpvstation.replicas.remote import OnProgress, PlaceFault
from fpvstation.store.sums_file import StoredSegment
from testkit.base_station.disk import FakeDisk, hash_of, sums_of

PIECE = 64
"""Size in bytes; the world's pieces are small, for speed."""


class Step:
    """Awaitable that is one step of the world."""

    def __await__(self) -> Generator[None, None, None]:
        yield


@dataclass
class FakeCar:
    """Car with a ring that removes only files with a receipt."""

    random: Random
    name: str = "Plague"
    faults: float = 0.0
    files: dict[str, bytes] = field(default_factory=dict)
    fetched: set[str] = field(default_factory=set)
    recorded: set[str] = field(default_factory=set)
    """Checksums of all segments ever recorded."""
    copies_required: int = 1
    make: Callable[[Random], bytes] | None = None
    """Maker of recorded bytes; None for any bytes."""

    def record(self) -> None:
        """Record another minute. The clock stands in 1970 now and then, and may repeat a name."""
        month = self.random.choice(["197001", "202611"])
        day = self.random.randint(1, 2)
        number = self.random.randint(1, 9)
        name = f"{self.name}-{month}{day:02d}T000010Z-{number:04d}.mcap"
        if name not in self.files:
            size = self.random.choice([0, 1, 63, 64, 65, 400])
            data = (self.make or (lambda dice: dice.randbytes(size)))(self.random)
            self.files[name] = data
            self.recorded.add(hash_of(data))

    def let_go(self) -> None:
        """Let the ring make room."""
        for name in sorted(self.fetched)[: self.random.randint(0, 2)]:
            self.fetched.discard(name)
            del self.files[name]


OFFICE = "office:/store"


@dataclass
class FakeOffice:
    """File server that has each file whole or not at all, like rdcp."""

    random: Random
    faults: float = 0.0
    files: dict[str, bytes] = field(default_factory=dict)

    rotted: set[str] = field(default_factory=set)
    """Checksums of files that lost a bit there."""

    def has(self, sha256: str) -> bool:
        """Return True if these bytes are there."""
        return any(hash_of(data) == sha256 for data in self.files.values())

    def rot(self, path: str) -> None:
        """Flip a bit of a file there, or remove the file."""
        data = bytearray(self.files[path])
        self.rotted.add(hash_of(data))
        if data and self.random.random() < 0.7:
            data[self.random.randrange(len(data))] ^= 1
            self.files[path] = bytes(data)
        else:
            del self.files[path]


class Link:
    """Car in the view of one station, over a link that fails."""

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
        await self._way()  # old at its arrival
        most = self._random.randint(1, 4)
        return Listing(car.name, found[:most], len(found) > most)

    async def sums(self, name: str) -> Sums:
        await self._way()
        return sums_of(self._data(name))

    def pieces(self, name: str, sums: Sums, first: int, last: int) -> "Pieces":
        return Pieces(self, name, sums, first, last)

    async def receipt(self, name: str, sha256: str) -> None:
        await self._way()
        if hash_of(self._data(name)) != sha256:
            raise SegmentGone
        assert self._disk.durable(sha256), f"a receipt for {name} without its bytes"
        if self._car.copies_required > 1:
            there = self._office.has(sha256) or sha256 in self._office.rotted
            assert there, f"a receipt for {name} without a copy"
        self._car.fetched.add(name)
        await self._way()  # the receipt was taken, and the answer is lost

    def _data(self, name: str) -> bytes:
        if name not in self._car.files:
            raise SegmentGone
        return self._car.files[name]

    async def piece(self, name: str, sums: Sums, number: int) -> bytes:
        await self._way()
        data = self._data(name)
        if hash_of(data) != sums.sha256:
            raise SegmentGone
        piece = bytearray(data[number * PIECE : (number + 1) * PIECE])
        if self._random.random() < self._car.faults:
            piece[self._random.randrange(len(piece))] ^= 1 << self._random.randrange(8)
        if self._random.random() < self._car.faults:
            del piece[self._random.randrange(len(piece)) :]
        return bytes(piece)


@dataclass
class Pieces:
    """Async iterator, as no event loop is here to end a generator."""

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
    """Office in the view of one station: cut, full, or killed midway."""

    place = OFFICE

    def __init__(self, office: FakeOffice, disk: FakeDisk) -> None:
        self._office, self._disk = office, disk

    async def _way(self) -> None:
        await Step()
        if self._office.random.random() < self._office.faults:
            raise PlaceFault("it is full, or away")

    async def claim(self, store: str, known: bool) -> None:
        await self._way()
        self._home = f"{store}/"  # each store has a folder of its own

    async def send(
        self, session: str, listed: list[StoredSegment], anew: bool, on_progress: OnProgress
    ) -> None:
        for one in listed:
            await self._way()
            path = self._home + one.path
            if anew or path not in self._office.files:
                self._office.files[path] = self._disk.read(one.path)
        await self._way()

    async def check(self, session: str, listed: list[StoredSegment]) -> list[str]:
        await self._way()
        there = self._office.files
        return [
            one.path.rpartition("/")[2]
            for one in listed
            if hash_of(there.get(self._home + one.path, b"?")) != one.sha256
        ]

    async def fetch(self, session: str, on_progress: OnProgress) -> dict[str, str]:
        found = {}
        for path, data in list(self._office.files.items()):
            if path.startswith(f"{self._home}{session}/"):
                await self._way()
                name = path.rpartition("/")[2]
                found[name] = f".incoming/office/{name}"
                if not self._disk.mounted:  # a busy disk stays mounted, but this one is gone
                    raise PlaceFault("the disk is gone")
                self._disk.remove(found[name])
                self._disk.write_at(found[name], 0, data)
        await self._way()
        return found
