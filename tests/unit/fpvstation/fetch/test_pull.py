"""Single round in which successive segments fail."""

import asyncio
import errno
from collections.abc import AsyncGenerator, Callable
from random import Random
from typing import Any

import pytest
from testkit.base_station.disk import FakeDisk, sums_of
from testkit.base_station.stored import act, opened

from fpvcar.runtime.texts import fault_text
from fpvcar.runtime.units import MIB
from fpvcar.wire.station import Listing, Segment, Sums
from fpvstation.errors import StationError
from fpvstation.fetch import pull as pull_module
from fpvstation.fetch.fair_slots import TURN_S, FairSemaphore
from fpvstation.fetch.pull import Act, CarFault, Pull, Round
from fpvstation.store.identity import StoreGone
from fpvstation.store.store import Store

NAMES = [f"Plague-20261121T193100Z-{number:04d}.mcap" for number in range(1, 7)]


class PlayedCar:
    """Car with six segments, some of which raise a fault."""

    def __init__(self, faults: dict[str, Exception]) -> None:
        self.faults, self.receipts = faults, list[str]()
        self.away = False

    async def listing(self, after: str, everything: bool) -> Listing:
        if self.away:
            raise CarFault("away")
        left = [name for name in NAMES if name not in self.receipts]
        return Listing("Plague", [Segment(name, len(name)) for name in left])

    async def sums(self, name: str) -> Sums:
        if name in self.faults:
            raise self.faults[name]
        return sums_of(name.encode())

    async def pieces(
        self, name: str, sums: Sums, first: int, last: int
    ) -> AsyncGenerator[bytes, None]:
        yield name.encode()

    async def receipt(self, name: str, sha256: str) -> None:
        self.receipts.append(name)


def pull_of(
    car: PlayedCar, store: Store | None = None, act: Act = act, turns: FairSemaphore | None = None
) -> Pull:
    """Return the rounds with a car, into a store in memory if none is given."""
    store = store or opened(FakeDisk(Random(1)))
    return Pull(car, store, "Plague", act, turns or FairSemaphore())


@pytest.mark.parametrize(
    "fault", [CarFault("500"), StationError("two others"), OSError(errno.EIO, "card")]
)
async def test_failed_segment_does_not_block_the_next(fault: Exception) -> None:
    car = PlayedCar({NAMES[0]: fault, NAMES[1]: fault, NAMES[3]: fault})
    done = await pull_of(car).once(False)
    assert done.bad == dict.fromkeys(car.faults, fault_text(fault))
    assert car.receipts == done.stored == [NAMES[2], NAMES[4], NAMES[5]]
    assert done.waiting == 3


async def test_three_failures_in_a_row_are_a_fault_of_the_car() -> None:
    car = PlayedCar(dict.fromkeys(NAMES[:3], CarFault("cut")))
    pull = pull_of(car)
    with pytest.raises(CarFault, match="cut"):
        await pull.once(False)
    assert list(pull.round.bad) == NAMES[:3] and not car.receipts
    with pytest.raises(CarFault):
        await pull.once(False, last=set(NAMES[:3]))
    assert car.receipts == NAMES[3:], "those that failed before come last"


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
async def test_full_or_read_only_disk_ends_the_round_at_once(fault: int) -> None:
    car = PlayedCar({NAMES[0]: OSError(fault, "full")})
    with pytest.raises(OSError, match="full"):
        await pull_of(car).once(False)
    assert not car.receipts


async def test_endless_list_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of a million segments must not be held in memory first."""
    monkeypatch.setattr(pull_module, "SEGMENTS_MOST", 1500)
    asked = list[str]()

    class Endless(PlayedCar):
        async def listing(self, after: str, everything: bool) -> Listing:
            asked.append(after)
            first = 500 * len(asked)
            found = [Segment(NAMES[0].replace("0001", f"{first + at:08d}"), 1) for at in range(500)]
            return Listing("Plague", found, more=True)

    with pytest.raises(CarFault, match="more than 1500 segments"):
        await pull_of(Endless({})).once(False)
    assert len(asked) == 5


async def unmounted(at: int) -> bool:
    """Run a round with the disk unmounted at that call; return False if it had fewer calls."""
    disk, car, calls = FakeDisk(Random(1)), PlayedCar({}), list[int]()
    store = opened(disk)

    async def unmounting(function: Callable[..., Any], *arguments: Any) -> Any:
        if len(calls) == at:
            disk.unmount()
        calls.append(len(car.receipts))
        return function(*arguments)

    pull = pull_of(car, store, unmounting)
    try:
        await pull.once(False)
    except StoreGone as fault:
        assert store.id in str(fault) and "mount its disk" in str(fault)
    if len(calls) <= at:
        return False
    assert len(car.receipts) == calls[at], "a receipt without a disk"
    disk.mount()  # mount() checks that the folder below stayed empty
    await pull.once(False)
    assert set(car.receipts) == set(NAMES), "all comes when it is back"
    return True


async def test_unmounted_disk_gets_no_byte_and_gives_no_receipt() -> None:
    at = 0
    while await unmounted(at):
        at += 1
    assert at > 4 * len(NAMES)


async def test_segment_awaiting_copies_gets_no_receipt_and_no_reread() -> None:
    car, store, safe = PlayedCar({}), opened(FakeDisk(Random(1))), set[str]()

    async def pulled() -> Round:
        enough = lambda stored: stored.path.rpartition("/")[2] in safe  # noqa: E731
        return await Pull(car, store, "Plague", act, FairSemaphore(), enough).once(False)

    first = await pulled()
    assert (first.stored, first.receipts, first.held) == (NAMES, 0, 6)
    car.faults = dict.fromkeys(NAMES[1:], CarFault("asked for its sums"))
    safe.add(NAMES[0])
    second = await pulled()
    assert not second.bad and (second.held, second.waiting) == (5, 0)
    assert car.receipts == NAMES[:1]


async def test_segment_removed_before_its_receipt_is_reported() -> None:
    car = PlayedCar({})
    pull = pull_of(car)
    await pull.once(False)
    for session in list(pull._store.sessions()):
        pull._store.remove(session)
    car.receipts.clear()
    done = await pull.once(False)
    assert done.removed == NAMES and not car.receipts and not done.stored


async def test_evicted_segment_is_fetched_again_only_without_its_receipt() -> None:
    class Everything(PlayedCar):
        async def listing(self, after: str, everything: bool) -> Listing:
            listed = [Segment(one, len(one), one in self.receipts) for one in NAMES]
            return Listing("Plague", listed)

    car = Everything({})
    pull = pull_of(car)
    await pull.once(False)
    for session in list(pull._store.sessions()):
        assert pull._store.evict(session, lambda gone: True)
    receipts, car.receipts = car.receipts, NAMES[1:]
    done = await pull.once(True)
    assert done.stored == NAMES[:1] and sorted(car.receipts) == receipts
    assert not done.removed


async def test_next_segment_is_pulled_while_one_is_published() -> None:
    car, second = PlayedCar({}), asyncio.Event()

    async def publishing(function: Callable[..., Any], *arguments: Any) -> Any:
        if function.__name__ == "publish" and not car.receipts:
            await second.wait()
        return function(*arguments)

    class Told(PlayedCar):
        async def sums(self, name: str) -> Sums:
            if name == NAMES[1]:
                second.set()
            return await super().sums(name)

    car = Told({})
    async with asyncio.timeout(20.0):
        await pull_of(car, act=publishing).once(False)
    assert car.receipts == NAMES


async def test_cancelled_round_leaves_no_task_behind() -> None:
    car, publishing = PlayedCar({}), asyncio.Event()

    async def never(function: Callable[..., Any], *arguments: Any) -> Any:
        if function.__name__ == "publish":
            publishing.set()
            await asyncio.Event().wait()
        return function(*arguments)

    round_ = asyncio.create_task(pull_of(car, act=never).once(False))
    await publishing.wait()
    round_.cancel()
    with pytest.raises(asyncio.CancelledError):
        await round_
    assert asyncio.all_tasks() == {asyncio.current_task()} and not car.receipts


class SlowCar(PlayedCar):
    """Car whose pieces each take longer than a turn."""

    def __init__(self, data: bytes, now_s: list[float]) -> None:
        super().__init__({})
        self.data, self.now_s, self.asked = data, now_s, list[tuple[int, int]]()

    async def listing(self, after: str, everything: bool) -> Listing:
        return Listing("Slow", [Segment(NAMES[0], len(self.data))])

    async def sums(self, name: str) -> Sums:
        return sums_of(self.data)

    async def pieces(
        self, name: str, sums: Sums, first: int, last: int
    ) -> AsyncGenerator[bytes, None]:
        self.asked.append((first, last))
        for number in range(first, last + 1):
            await asyncio.sleep(0)
            self.now_s[0] += TURN_S + 1.0
            yield self.data[number * MIB : (number + 1) * MIB]


async def test_slow_car_gives_up_its_place_after_each_turn() -> None:
    now_s = [0.0]
    turns = FairSemaphore(lambda: now_s[0], places=1)
    slow, quick = SlowCar(bytes(3 * MIB), now_s), PlayedCar({})
    store = opened(FakeDisk(Random(1)))
    slowly = asyncio.create_task(Pull(slow, store, "Slow", act, turns).once(False))
    await asyncio.sleep(0)
    await pull_of(quick, store, turns=turns).once(False)
    assert (await slowly).stored == [NAMES[0]] and quick.receipts == NAMES
    assert slow.asked == [(0, 2), (1, 2), (2, 2)], "each MiB in a turn of its own"


async def test_single_car_keeps_its_place() -> None:
    now_s = [0.0]
    slow = SlowCar(bytes(3 * MIB), now_s)
    turns = FairSemaphore(lambda: now_s[0], places=1)
    await pull_of(slow, turns=turns).once(False)
    assert slow.asked == [(0, 2)]
