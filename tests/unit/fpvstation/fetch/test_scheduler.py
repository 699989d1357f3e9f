"""Retries of the scheduler: cars come and go, and faults are retried with growing pauses."""

import asyncio
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from fpvcar.runtime.texts import VERBATIM
from fpvcar.wire.station import Pairing
from fpvstation.fetch.cars import Car, Cars
from fpvstation.fetch.pull import CarFault, Round
from fpvstation.fetch.scheduler import BACK_OFF_S, POLL_S, CarState, FetchScheduler
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store
from tests.unit.fpvstation.fetch.test_pull import NAMES, PlayedCar

PAIRING = Pairing("Plague", "1" * 16, "2" * 32, "33" * 32)


class Enough(BaseException):
    """Exception that ends a test early."""


class Played(FetchScheduler):
    """FetchScheduler with played rounds and recorded sleeps."""

    def __init__(self, home: Path, rounds: list[Round | Exception]) -> None:
        self.cars, self.slept, self.everything = Cars(home), list[float](), list[bool]()
        self._rounds = rounds
        super().__init__(self.cars, Store(Folder(home)), sleep=self._note)

    async def _note(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.slept.append(seconds)

    async def _round(self, car: Car, state: CarState, everything: bool) -> Round:
        self.everything.append(everything)
        if not self._rounds:
            raise Enough
        one = self._rounds.pop(0)
        if isinstance(one, Exception):
            raise one
        state.stored += len(one.stored)
        return one

    async def one_car(self) -> CarState:
        """Keep one car until all rounds are played."""
        car = self.cars.add(PAIRING, "http://127.0.0.1:1", "")
        self.states[car.id] = CarState(car.name, car.folder, car.url)
        with pytest.raises(Enough):
            await self._fetch_car(car)
        return self.states[car.id]


async def test_failed_round_is_retried_with_growing_pauses(tmp_path: Path) -> None:
    faults: list[Round | Exception] = [CarFault("away")] * 7
    keeper = Played(tmp_path, [*faults, Round(), OSError(28, "full")])
    state = await keeper.one_car()
    last = BACK_OFF_S[-1]
    assert keeper.slept == [*BACK_OFF_S, last, last, POLL_S, BACK_OFF_S[0]]
    assert "disk is full" in str(state.state) and "fpvstation rm" in str(state.state)


async def test_waiting_count_is_kept_while_the_car_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = PlayedCar(dict.fromkeys(NAMES[-2:], CarFault("500")))
    monkeypatch.setattr("fpvstation.fetch.scheduler.HttpCar", lambda car, client: played)
    store, now_s = Store(Folder(tmp_path)), 1000.0
    store.open("")
    cars = Cars(tmp_path)
    keeper = FetchScheduler(cars, store, utc_s=lambda: now_s)
    car = cars.add(PAIRING, "http://127.0.0.1:1", "")
    state = CarState(car.name, car.folder, car.url)

    async def asked() -> tuple[float, float, int, list[str]]:
        with suppress(CarFault):
            await keeper._round(car, state, False)
        return state.seen_s, state.stored_s, state.waiting, list(state.bad)

    assert await asked() == (1000.0, 1000.0, 2, NAMES[-2:])
    now_s = 2000.0
    assert await asked() == (2000.0, 1000.0, 2, NAMES[-2:])
    now_s, played.away = 3000.0, True
    assert await asked() == (2000.0, 1000.0, 2, [])
    played.away = False
    played.faults.clear()
    assert await asked() == (3000.0, 3000.0, 0, [])
    now_s = 4000.0
    assert await asked() == (4000.0, 4000.0, 0, []), "nothing waits"
    now_s = 9000.0
    played.faults[NAMES[0]] = CarFault("500")
    played.receipts.clear()
    store.remove(next(store.sessions()), ".trash")
    assert await asked() == (9000.0, 9000.0, 1, NAMES[:1]), "it waits since now"


async def test_full_comparison_repeats_until_a_round_succeeds(tmp_path: Path) -> None:
    keeper = Played(tmp_path, [CarFault("away"), Round(), Round()])
    await keeper.one_car()
    assert keeper.everything == [True, True, False, False]


async def test_bad_segment_is_retried_with_growing_pauses(tmp_path: Path) -> None:
    bad = {"x.mcap": VERBATIM(text="1 MiB arrived damaged")}
    new = Round(bad=bad, stored=["y.mcap"])
    keeper = Played(tmp_path, [*[Round(bad=bad)] * 6, new, Round(bad=bad), Round()])
    state = await keeper.one_car()
    last = BACK_OFF_S[-1]
    assert keeper.slept == [*BACK_OFF_S, last, *BACK_OFF_S[:2], POLL_S]
    assert not state.bad and state.state == "ok"


async def test_bad_segment_is_named_in_the_state(tmp_path: Path) -> None:
    bad = {"x.mcap": VERBATIM(text="1 MiB arrived damaged")}
    state = await Played(tmp_path, [Round(bad=bad)]).one_car()
    assert state.bad == bad and "x.mcap: 1 MiB arrived damaged" in str(state.state)


async def test_failed_full_comparison_is_repeated_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = iter((0.0, BACK_OFF_S[-1] - 1.0, BACK_OFF_S[-1], 2 * BACK_OFF_S[-1]))
    clock = SimpleNamespace(monotonic=lambda: next(now_s))
    monkeypatch.setattr("fpvstation.fetch.scheduler.time", clock)
    keeper = Played(tmp_path, [Round(bad={"x.mcap": VERBATIM(text="cut")}), Round(), Round()])
    await keeper.one_car()
    assert keeper.everything == [True, False, True, False]


async def test_internal_fault_is_logged_and_retried(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keeper = Played(tmp_path, [ZeroDivisionError("oh"), LookupError("no"), Round()])
    state = await keeper.one_car()
    assert keeper.slept == [*BACK_OFF_S[:2], POLL_S] and state.state == "ok"
    assert "Plague: internal fault: ZeroDivisionError('oh')" in caplog.text
    assert "Traceback" in caplog.text and not state.internal_fault


async def test_keeper_internal_fault_of_a_car_is_kept_until_a_good_round(tmp_path: Path) -> None:
    state = await Played(tmp_path, [ZeroDivisionError("oh")]).one_car()
    assert str(state.internal_fault) == "internal fault: ZeroDivisionError('oh')"


async def test_keeper_ends_when_the_task_of_a_car_ends(tmp_path: Path) -> None:
    keeper = Played(tmp_path, [])
    keeper.cars.add(PAIRING, "http://127.0.0.1:1", "")
    with pytest.raises(Enough):
        await asyncio.wait_for(keeper.run(), 20.0)


async def test_cars_that_are_forgotten_are_left_alone(tmp_path: Path) -> None:
    keeper = Played(tmp_path, [Round()] * 3)
    car = keeper.cars.add(PAIRING, "http://127.0.0.1:1", "")
    keeper._follow_list()
    assert list(keeper.states) == [car.id]
    keeper.cars.remove(car)
    keeper._follow_list()
    assert not keeper.states and not keeper._tasks
