"""Real threads and drivers of the range sensors on the emulated chip."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from testkit.pins.vl53l0x import Rig
from testkit.pins.wheels import Chip, until

from fpvbench import soc as chips
from fpvcar import config
from fpvcar.config import profiles
from fpvcar.devices import backends
from fpvcar.devices.chips import hcsr04
from fpvcar.devices.chips.vl53l0x import NEAREST_M, Sample, Status
from fpvcar.devices.pigpio.pins import PigpioPins
from fpvcar.devices.pins import PinsSilent
from fpvcar.runtime import paths
from fpvcar.runtime.texts import STARTING, State
from fpvcar.sensors.ranges import Ranges
from fpvcar.sensors.reading import UNREAD_MOST, LastReading
from fpvcar.sensors.tof import AGAIN_S, SILENT_S, Tof, TofThread
from fpvcar.wire import telemetry

SOON_S = 20.0
POWER, TRIGGER, ECHO = 4, 20, 21
FRONT, REAR = 0, 3
FITTED = ("--i2c=1:0:vl53l0x:4", f"--hcsr04={TRIGGER},{ECHO},{REAR}")


@contextmanager
def sensing(chip: Chip, *overrides: str) -> Iterator[Callable[[], list[telemetry.Range]]]:
    """Yield the readings of the bench car's sensors."""
    profile = profiles.load(paths.HARDWARE / "bench.toml", [f"pins.port = {chip.port}", *overrides])
    ranges = Ranges(profile)
    ranges.start()
    try:
        yield lambda: list(ranges.status(time.monotonic()))
    finally:
        ranges.stop()


@pytest.fixture
def chip(tmp_path: Path) -> Iterator[Chip]:
    with Chip(tmp_path, *FITTED) as chip:
        put(chip, 0.8, 1.5)
        yield chip


def put(chip: Chip, front_m: float, rear_m: float) -> None:
    with chips.writing(chip.soc.world) as world:
        world.range_m[FRONT], world.range_m[REAR] = front_m, rear_m


def near(reported: telemetry.Range, range_m: float | None) -> bool:
    if reported.state != "ok" or reported.age_s is None or reported.age_s > 1.0:
        return False
    if range_m is None or reported.range_m is None:
        return reported.range_m is range_m
    return abs(reported.range_m - range_m) < 0.06


def test_both_range_sensors_follow_the_world(chip: Chip) -> None:
    with sensing(chip) as reported:
        for front_m, rear_m in ((0.8, 1.5), (0.1, 0.3), (math.inf, math.inf)):
            put(chip, front_m, rear_m)
            wanted = [None if math.isinf(one) else one for one in (front_m, rear_m)]
            seen = partial(lambda ranges: all(map(near, reported(), ranges)), wanted)
            until(seen, SOON_S, f"not seen: {wanted}")
        names = [(one.name, one.bearing_deg) for one in reported()]
        assert names == [("front", 0.0), ("rear", 180.0)]


def test_stuck_echo_is_reported_and_the_other_sensor_goes_on(chip: Chip) -> None:
    with sensing(chip) as reported:
        until(lambda: near(reported()[1], 1.5), SOON_S, "no range")
        chip.soc.pin[ECHO].external = 1
        until(lambda: reported()[1].state == hcsr04.Status.STUCK.value, SOON_S, "not said")
        until(lambda: near(reported()[0], 0.8), SOON_S, "the other one is held up")
        chip.soc.pin[ECHO].external = 0
        chip.soc.pin[ECHO].external = chips.FLOATING
        until(lambda: near(reported()[1], 1.5), SOON_S, "not back")


def test_sensor_that_loses_power_is_set_up_again(chip: Chip) -> None:
    with sensing(chip) as reported:
        until(lambda: near(reported()[0], 0.8), SOON_S, "no range")
        chip.soc.pin[POWER].out = 0  # an unexpected power dip
        until(lambda: reported()[0].state != "ok", SOON_S, "not said")
        until(lambda: near(reported()[1], 1.5), SOON_S, "the other one is held up")
        until(lambda: near(reported()[0], 0.8), SOON_S, "not back")


def test_absent_sensors_are_reported_without_an_age(tmp_path: Path) -> None:
    with Chip(tmp_path) as chip, sensing(chip) as reported:
        until(
            lambda: reported()[1].state == hcsr04.Status.ABSENT.value,
            SOON_S,
            "the ultrasound says nothing",
        )
        until(lambda: "I2C" in str(reported()[0].state), SOON_S, "the ToF says nothing")
        assert [one.age_s for one in reported()] == [None, None]


def test_two_tof_sensors_share_a_bus_after_xshut(tmp_path: Path) -> None:
    with Chip(tmp_path, "--i2c=1:0:vl53l0x:4", "--i2c=1:3:vl53l0x:10") as chip:
        put(chip, 0.4, 0.9)
        with sensing(
            chip,
            "sensors.ultrasound = {}",
            "sensors.tof.front.address = 0x30",
            "sensors.tof.back = {power = 10, address = 0x31, bearing_deg = 180}",
        ) as reported:
            until(lambda: near(reported()[0], 0.4) and near(reported()[1], 0.9), SOON_S, "not both")


def test_dead_daemon_is_reported_and_reconnected(chip: Chip) -> None:
    with sensing(chip) as reported:
        until(lambda: near(reported()[0], 0.8) and near(reported()[1], 1.5), SOON_S, "none")
        chip.kill_pigpiod()
        until(lambda: all(one.state != "ok" for one in reported()), SOON_S, "not said")
        chip.restart_pigpiod()
        until(lambda: near(reported()[0], 0.8) and near(reported()[1], 1.5), SOON_S, "gone")


def one_that(sample: Sample | None, clock_s: Callable[[], float]) -> tuple[Tof, LastReading]:
    """Return a VL53L0X that gives one sample. With None it answers, and ranges no more, as after a
    dip too short to be detected."""
    reading = LastReading("front", 0.0, 0.5, clock_s())
    tof = Tof(config.Tof(), reading, None, None, clock_s)  # type: ignore[arg-type]
    chip = SimpleNamespace(result=b"", read=lambda after_s: sample)
    tof._chip = chip  # type: ignore[assignment]
    tof._news_s, reading.state = clock_s(), "ok"
    return tof, reading


@pytest.mark.parametrize(
    ("sample", "reported"),
    [
        (Sample(0.4, Status.OK), (0.4, "ok", 51.0)),
        (Sample(None, Status.PHASE), (None, "ok", 51.0)),
        (Sample(None, Status.SIGNAL), (None, "ok", 51.0)),
        (Sample(None, Status.NEAR), (NEAREST_M, "ok", 51.0)),
        (Sample(None, Status.HARDWARE), (0.5, Status.HARDWARE.value, 50.0)),
        (Sample(None, Status.NONE), (0.5, Status.NONE.value, 50.0)),
    ],
)
def test_tof_status_decides_range_and_state(
    sample: Sample, reported: tuple[float | None, State, float]
) -> None:
    now_s = 50.0
    tof, reading = one_that(sample, lambda: now_s)
    now_s = 51.0
    tof.turn()
    assert (reading.range_m, reading.state, reading.at_s) == reported
    assert reading.readings == (reported[1] == "ok")


def test_tof_that_stops_ranging_is_given_up() -> None:
    now_s = 50.0
    tof, reading = one_that(None, lambda: now_s)
    now_s += SILENT_S - 0.01
    tof.turn()
    assert reading.state == "ok", "not yet"
    now_s += 0.02
    tof.turn()
    assert str(reading.state) == "stopped ranging"
    assert tof.due_s == now_s + AGAIN_S


def test_echo_pin_of_another_former_use_becomes_an_input(chip: Chip) -> None:
    """Former uses: an output for an LED; a filtered input for a button. pigpiod keeps that."""
    pins = PigpioPins("127.0.0.1", chip.port, 5.0)
    pins.input_pull_up(ECHO, 20_000)
    pins.write(ECHO, 0)
    pins.close()
    with sensing(chip) as reported:
        until(lambda: near(reported()[1], 1.5), SOON_S, "not heard")
    assert chip.soc.pin[ECHO].mode == chips.MODE_INPUT
    assert chip.soc.pin[ECHO].pull == chips.PULL_DOWN


def tof_thread(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> TofThread:
    profile = profiles.load(
        paths.HARDWARE / "bench.toml",
        ['i2c.backend = "linux"', "sensors.tof = {}", "sensors.tof.front.bus = 1"],
    )
    monkeypatch.setattr(backends, "open_i2c", lambda _: nullcontext(rig.open))
    monkeypatch.setattr("fpvcar.sensors.tof.time.sleep", rig.sleep)
    readings = [LastReading("front", 0.0)]
    thread = TofThread("tof", profile, readings, rig.clock_s)
    thread.pause = rig.sleep  # type: ignore[method-assign]
    return thread


def test_kernel_i2c_bus_needs_no_pin_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    thread = tof_thread(rig, monkeypatch)
    note = thread._readings[0].update

    def enough(range_m: float | None, state: State, now_s: float) -> None:
        note(range_m, state, now_s)
        thread.ending = thread._readings[0].readings >= 10

    monkeypatch.setattr(thread._readings[0], "update", enough)
    thread.live()
    assert thread._readings[0].readings == 10 and rig.closed == 1


def test_open_devices_are_closed_when_the_daemon_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    thread = tof_thread(rig, monkeypatch)
    rig.fault = PinsSilent("it hangs")
    with pytest.raises(PinsSilent):
        thread.live()
    assert rig.closed == 1


def test_offset_is_added_as_soon_as_it_is_tuned() -> None:
    bench = profiles.load(paths.HARDWARE / "bench.toml")
    ranges = Ranges(bench)
    front = ranges._readings[0]
    front.update(0.5, "ok", 1.0)
    assert front.range_m == 0.5
    ranges.tune(
        profiles.load(paths.HARDWARE / "bench.toml", ["sensors.tof.front.offset_m = -0.05"])
    )
    front.update(0.5, "ok", 2.0)
    assert front.range_m == pytest.approx(0.45)
    front.update(0.02, "ok", 3.0)
    assert front.range_m == 0.0
    front.update(None, "ok", 4.0)
    assert front.range_m is None
    front.noisy(0.3)
    assert front.range_m == pytest.approx(0.25)
    front.noisy(None)
    assert front.range_m is None


def test_measurements_are_taken_once_and_in_order() -> None:
    ranges = Ranges(profiles.load(paths.HARDWARE / "bench.toml"))
    front, other = ranges._readings[:2]
    for number in range(UNREAD_MOST + 2):
        front.update(0.1 * number, "ok", float(number))
    other.update(None, "ok", 1.0)
    other.update(None, STARTING, 2.0)
    taken = ranges.measured()
    assert [one.at_s for one in taken if one.name == front.name] == [
        float(number) for number in range(2, UNREAD_MOST + 2)
    ], "the oldest went"
    assert taken[-1] == telemetry.Measured(other.name, other.bearing_deg, None, 1.0)
    assert len(taken) == UNREAD_MOST + 1 and not ranges.measured()
