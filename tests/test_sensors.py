"""The range sensors' real threads and drivers on the emulated chip."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fpvcar import config, paths, wire
from fpvcar.bench import soc as chips
from fpvcar.devices.vl53l0x import Sample
from fpvcar.sensors import AGAIN_S, SILENT_S, Ranges, Seen, Tof
from tests.wheels_rig import Chip, until

SOON_S = 8.0
POWER, TRIGGER, ECHO = 4, 20, 21
FRONT, REAR = 0, 3
FITTED = ("--i2c=1:0:vl53l0x:4", f"--hcsr04={TRIGGER},{ECHO},{REAR}")


@contextmanager
def sensing(chip: Chip, *overrides: str) -> Iterator[Callable[[], list[wire.Range]]]:
    """What the sensors of the bench's car say."""
    profile = config.load(
        paths.HARDWARE / "bench.toml", [f"pins.port = {chip.port}", *overrides]
    )
    ranges = Ranges(profile)
    ranges.start()
    try:
        yield lambda: list(ranges.told(time.monotonic()))
    finally:
        ranges.stop()


@pytest.fixture
def chip(tmp_path: Path) -> Iterator[Chip]:
    chip = Chip(tmp_path, *FITTED)
    put(chip, 0.8, 1.5)
    try:
        yield chip
    finally:
        chip.end()


def put(chip: Chip, front_m: float, rear_m: float) -> None:
    with chips.writing(chip.soc.world) as world:
        world.range_m[FRONT], world.range_m[REAR] = front_m, rear_m


def near(told: wire.Range, range_m: float | None) -> bool:
    if told.state != "ok" or told.age_s is None or told.age_s > 1.0:
        return False
    if range_m is None or told.range_m is None:
        return told.range_m is range_m
    return abs(told.range_m - range_m) < 0.06


def test_both_follow_the_world(chip: Chip) -> None:
    with sensing(chip) as told:
        for front_m, rear_m in ((0.8, 1.5), (0.1, 0.3), (math.inf, math.inf)):
            put(chip, front_m, rear_m)
            wanted = [None if math.isinf(one) else one for one in (front_m, rear_m)]
            until(
                lambda wanted=wanted: all(map(near, told(), wanted)), SOON_S,  # type: ignore[misc]
                f"not seen: {wanted}",
            )  # fmt: skip
        names = [(one.name, one.bearing_deg) for one in told()]
        assert names == [("front", 0.0), ("rear", 180.0)]


def test_a_stuck_echo_is_said_and_the_other_goes_on(chip: Chip) -> None:
    with sensing(chip) as told:
        until(lambda: near(told()[1], 1.5), SOON_S, "no range")
        chip.soc.pin[ECHO].external = 1
        until(lambda: "does not fall" in told()[1].state, SOON_S, "not said")
        until(lambda: near(told()[0], 0.8), SOON_S, "the other one is held up")
        chip.soc.pin[ECHO].external = 0
        chip.soc.pin[ECHO].external = chips.FLOATING
        until(lambda: near(told()[1], 1.5), SOON_S, "not back")


def test_a_sensor_that_loses_its_power_is_set_up_anew(chip: Chip) -> None:
    with sensing(chip) as told:
        until(lambda: near(told()[0], 0.8), SOON_S, "no range")
        chip.soc.pin[POWER].out = 0  # a dip, which nobody ordered
        until(lambda: told()[0].state != "ok", SOON_S, "not said")
        until(lambda: near(told()[1], 1.5), SOON_S, "the other one is held up")
        until(lambda: near(told()[0], 0.8), SOON_S, "not back")


def test_absent_sensors_are_said_and_tried_again(tmp_path: Path) -> None:
    chip = Chip(tmp_path)
    try:
        with sensing(chip) as told:
            until(
                lambda: [one.state for one in told()][1] == "does not answer", SOON_S,
                "the ultrasound says nothing",
            )  # fmt: skip
            until(lambda: "I2C" in told()[0].state, SOON_S, "the ToF says nothing")
            assert [one.age_s for one in told()] == [None, None]
    finally:
        chip.end()


def test_two_share_a_bus_after_xshut(tmp_path: Path) -> None:
    chip = Chip(tmp_path, "--i2c=1:0:vl53l0x:4", "--i2c=1:3:vl53l0x:12")
    put(chip, 0.4, 0.9)
    try:
        with sensing(
            chip, "sensors.ultrasound = {}", "sensors.tof.front.address = 0x30",
            "sensors.tof.back = {power = 12, address = 0x31, bearing_deg = 180}",
        ) as told:  # fmt: skip
            until(
                lambda: near(told()[0], 0.4) and near(told()[1], 0.9), SOON_S,
                "not both",
            )  # fmt: skip
    finally:
        chip.end()


def test_a_daemon_that_dies_and_comes_back(chip: Chip) -> None:
    with sensing(chip) as told:
        until(lambda: near(told()[0], 0.8) and near(told()[1], 1.5), SOON_S, "none")
        chip.pigpiod.kill()
        chip.pigpiod.wait()
        until(lambda: all(one.state != "ok" for one in told()), SOON_S, "not said")
        chip.pigpiod = chip.start_pigpiod()
        until(lambda: near(told()[0], 0.8) and near(told()[1], 1.5), SOON_S, "gone")


class Mute:
    """A VL53L0X after a dip too short to be seen: it answers, and ranges no more."""

    def read(self) -> Sample | None:
        return None


def test_a_sensor_that_ranges_no_more_is_given_up() -> None:
    now_s = 50.0
    seen = Seen("front", 0.0)
    tof = Tof(config.Tof(), seen, None, lambda: now_s)  # type: ignore[arg-type]
    tof._chip, tof._news_s, seen.state = Mute(), now_s, "ok"  # type: ignore[assignment]
    now_s += SILENT_S - 0.01
    tof.turn()
    assert seen.state == "ok", "not yet"
    now_s += 0.02
    tof.turn()
    assert seen.state == "ranges no more"
    assert tof.due_s == now_s + AGAIN_S
