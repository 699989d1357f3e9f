"""Route /api/calibration: a grown-up only, while the car stands; saved values persist."""

import asyncio
import tomllib
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from testkit.grown_up import Client, GrownUpsApi
from testkit.hub import CODES, PROFILE, FakeSenses

from fpvcar import config
from fpvcar.calibration import store
from fpvcar.calibration.api import BASE, CalibrationApi, held_back, obstacle
from fpvcar.calibration.calibrator import Calibrator
from fpvcar.calibration.steps import CarState
from fpvcar.calibration.store import History
from fpvcar.config import profiles
from fpvcar.drive.gate import Cause, Decision, Hold, Latches, Reason
from fpvcar.runtime import paths
from fpvcar.wire.telemetry import Guarding, Range

MOTORS = PROFILE.motors.names


class Rig(GrownUpsApi):
    """Routes of calibration over a house."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path)
        self.file = tmp_path / store.FILE
        self.profile: config.Profile = PROFILE
        self.tuner = Calibrator(PROFILE, store.load(self.file, MOTORS))
        self.tuner.tuned.subscribe(self.house.control.tune, self._tune)
        self.api = CalibrationApi(
            self.tuner,
            self.house.control,
            FakeSenses(),
            self.rights,
            self.file,
            paths.HARDWARE / "bench.toml",
            lambda: self.house.now_s,
            lambda: 7.0,
        )

    def _tune(self, profile: config.Profile) -> None:
        self.profile = profile

    def ask(self, code: str = CODES.grown_up) -> AbstractAsyncContextManager[Client]:
        return self.serve(code, self.api)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


async def said(client: Client, path: str, status: int = 200) -> Any:
    """Return the answer to a POST."""
    answer = await client.post(f"{BASE}/{path}")
    text = await answer.text()
    assert answer.status == status, text
    assert status != 200 or answer.headers["Cache-Control"] == "no-store"
    return await answer.json() if status == 200 else text


async def test_any_page_reads_the_figures_for_its_map(rig: Rig) -> None:
    async with rig.ask() as client:
        await said(client, "set?key=guard.top_mps&value=2.5")
    async with rig.ask("") as client:
        motion = await (await client.get("/api/motion")).json()
    assert motion["guard"]["top_mps"] == 2.5 and motion["speeds"]["least_mps"] > 0.0
    assert (motion["turn"], motion["circle_m"]) == (None, PROFILE.motors.circle_m)


async def test_moving_car_takes_answers_but_no_calibration_change(rig: Rig) -> None:
    async with rig.ask() as client:
        await said(client, "begin?step=dead_band&of=drive")
        rig.house.control.duties = (0.1, 0.0)
        await asyncio.sleep(0.05)
        for path in ("begin?step=speed", "keep", "end", "undo", "set?key=a&value=1"):
            assert "car is moving" in await said(client, path, 409)
        assert (await said(client, "say?word=turns"))["phase"] == "rest"


async def test_step_runs_from_begin_to_kept_and_undone_value(rig: Rig) -> None:
    async with rig.ask() as client:
        begun = await said(client, "begin?step=speed")
        assert begun["wish"]["throttle"] > 0.0 and begun["phase"] == "hold"
        for share, took_s in ((0.3, 2.0), (0.8, 1.0)):
            await said(client, f"say?word=throttle&figure={share}")
            step = await said(client, f"say?word=measured&figure=1&figure={took_s}")
        assert step["found"]["guard.top_mps"] == 1.2
        assert await (await client.get(f"{BASE}/step")).json() == step
        now = await said(client, "keep")
        assert now["changes"][-1]["utc_s"] == 7.0 and now["undoable"]
        assert rig.profile.guard.top_mps == 1.2
        assert await (await client.get(f"{BASE}/step")).json() is None
        assert store.load(rig.file, MOTORS).values["guard.top_mps"] == 1.2
        text = await (await client.get(f"{BASE}/profile")).text()
        assert profiles.parse(tomllib.loads(text)) == rig.profile
        await said(client, "undo")
        assert store.load(rig.file, MOTORS).values == {} and rig.profile == PROFILE


async def test_step_that_raises_fails_with_its_fault_and_zero_wish(rig: Rig) -> None:
    async with rig.ask() as client:
        await said(client, "begin?step=dead_band&of=drive")
        assert rig.tuner.step is not None
        step = Mock(wraps=rig.tuner.step, update=Mock(side_effect=ValueError("no time")))
        rig.tuner.step = step
        async with asyncio.timeout(20.0):
            while not step.update.called:
                await asyncio.sleep(0.01)
        now = await (await client.get(f"{BASE}/step")).json()
        assert now["phase"] == "failed" and "no time" in now["fault"]
        assert now["wish"] == {"throttle": 0.0, "steer": 0.0}
        assert "begin it again" in await said(client, "say?word=turns", 400)
        await said(client, "keep", 400)
        assert rig.profile == PROFILE, "its trial is over"
        begun = await said(client, "begin?step=dead_band&of=drive")
        assert begun["phase"] == "coarse"


@pytest.mark.parametrize("fails", [False, True])
async def test_result_that_a_step_records_is_written(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    assert rig.tuner.history == store.History()
    kept = rig.tuner.history.changed("resistor drive", {}, 7.0, ("drive.resistor",))

    cars: list[CarState] = []
    monkeypatch.setattr(rig.tuner, "update", cars.append)

    def record(utc_s: float) -> bool:
        new, rig.tuner.history = kept != rig.tuner.history, kept
        return utc_s == 7.0 and new

    monkeypatch.setattr(rig.tuner, "record", record)
    if fails:
        rig.file.mkdir()
    async with rig.ask() as client:
        step = await said(client, "begin?step=speed")
        async with asyncio.timeout(20.0):
            while not rig.file.exists() or (fails and step["phase"] != "failed"):
                step = await (await client.get(f"{BASE}/step")).json()
    assert cars[0].battery == FakeSenses().battery(7.0)
    assert rig.tuner.history == kept
    if fails:
        assert "until the car restarts" in step["fault"]
    else:
        assert store.load(rig.file, MOTORS) == kept


async def test_values_are_set_by_hand(rig: Rig) -> None:
    async with rig.ask() as client:
        await said(client, "set?key=motors.drive.invert&value=true")
        await said(client, "set?key=motors.steer.trim&value=0.1")
        await said(client, "set?key=battery.curve&value=[0,0.4,1]")
        words = await said(client, "set?key=motors.drive.trim&value=3", 400)
        assert "0.5" in words
        assert "expected a number" in await said(client, "set?key=a&value=x", 400)
        await said(client, "set?key=motors.drive.forward&value=5", 400)
    assert rig.profile.motors.pair[0].invert and rig.profile.motors.pair[1].trim == 0.1
    again = Calibrator(PROFILE, store.load(rig.file, MOTORS))
    assert again.profile == rig.profile and again.profile != PROFILE


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("begin?step=fly", "this car has"),
        ("say?word=turns", "begin it again"),
        ("keep", "begin it again"),
        ("say?word=x&figure=y", "expected a number"),
        ("say?" + "figure=1&" * 9, "9 figures"),
    ],
)
async def test_refused_calibration_request_names_the_reason(
    rig: Rig, path: str, words: str
) -> None:
    async with rig.ask() as client:
        assert words in await said(client, path, 400)


async def test_failing_card_gives_507_and_value_holds_until_restart(rig: Rig) -> None:
    rig.file.mkdir()
    async with rig.ask() as client:
        words = await said(client, "set?key=motors.drive.trim&value=0.1", 507)
        assert "until the car restarts" in words
    assert rig.profile.motors.pair[0].trim == 0.1


async def test_missing_profile_file_exports_no_profile(rig: Rig) -> None:
    async with rig.ask() as client:
        rig.api._profile = None
        assert (await client.get(f"{BASE}/profile")).status == 404
        rig.api._profile = Path("/nowhere/car.toml")
        assert (await client.get(f"{BASE}/profile")).status == 503
    assert rig.tuner.history == History()


async def test_wish_of_a_step_moves_the_car_only_through_the_gate(rig: Rig) -> None:
    """A step alone moves no motor; its page sends an ordinary wish."""
    async with rig.ask() as client:
        step = await said(client, "begin?step=dead_band&of=drive")
        wish = step["wish"]["throttle"]
        await asyncio.sleep(0.1)
        assert not any(rig.house.duties)
        page = rig.house.visitor("Ann")
        page.drive(wish)
        assert not any(rig.house.duties)  # the wheel is free
        rig.house.hub._seat.take("client-Ann", "Ann", False, 0.0)
        page.drive(0.0)
        for _ in range(5):
            rig.house.now_s += 0.04
            page.drive(wish)
        assert rig.house.duties[0] == pytest.approx(0.02, rel=0.05)
        rig.house.now_s += 0.3
        rig.house.control.step()
        assert not any(rig.house.duties)


@pytest.mark.parametrize(
    ("latches", "reason", "throttle", "limit", "cause"),
    [
        (Latches(None, Hold(Cause.ESTOP, "Ann")), "stopped", 0.2, 1.0, "estop"),
        (Latches(None, Hold(Cause.DIRECTION)), "stopped", 0.2, 1.0, "direction"),
        (Latches(Cause.SILENCE), "stopped", 0.2, 1.0, "silence"),
        (Latches(), "neutral", 0.2, 1.0, "handover"),
        (Latches(None), "guarded", 0.2, 1.0, "guard"),
        (Latches(None), "limited", 0.2, 1.0, "blind_limit"),
        (Latches(None), "driving", -1.0, 0.5, "limit"),
        (Latches(None), "driving", 0.9, 0.5, None),
        (Latches(None), "driving", 1.0, 1.0, None),
    ],
)
def test_held_back_names_the_cause(
    latches: Latches, reason: Reason, throttle: float, limit: float, cause: str | None
) -> None:
    decision = Decision(0.0, 0.0, reason, latches)
    back = held_back(decision, throttle, limit, weak=False)
    assert (back and back["cause"]) == cause
    if cause == "estop":
        assert back and back["by"] == "Ann"
    if cause == "limit":
        assert held_back(decision, throttle, limit, weak=True) == {"cause": "weak", "by": ""}


async def test_step_reports_that_the_guard_holds_the_car(rig: Rig) -> None:
    async def _back(client: Client) -> object:
        return (await (await client.get(f"{BASE}/step")).json())["held_back"]

    async with rig.ask() as client:
        control = rig.house.control
        control.guard("limit")
        await said(client, "begin?step=straight", 400)
        step = await said(client, "begin?step=speed")
        assert step["held_back"]["cause"] == "handover" and not step["moves"]
        page = rig.house.visitor("Ann")
        rig.house.hub._seat.take("client-Ann", "Ann", False, 0.0)
        page.drive(0.0)
        assert await _back(client) is None
        page.drive(1.0)
        control.decision = Decision(0.0, 0.0, "guarded", Latches(None))
        rig.house.control._guard.ahead_by = "front"
        assert await _back(client) == {"cause": "guard", "by": "", "ahead": True, "range_m": 0.5}


def test_obstacle_is_the_one_in_the_direction_of_the_wish() -> None:
    guarding = Guarding("limit", 0.15, 0.0, 0.5, "front", "rear")
    ranges = [Range("front", 0.0, 0.14, 0.02), Range("rear", 180.0, None, 0.02)]
    assert obstacle(guarding, ranges, 0.3) == {"ahead": True, "range_m": 0.14}
    assert obstacle(guarding, ranges, -0.3) == {"ahead": False, "range_m": None}
