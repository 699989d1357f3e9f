"""Sensor faults absent, silent, stuck, noisy: reported with the age, and cleared on recovery."""

import math
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.pins.vl53l0x import NOBODY, Rig
from testkit.pins.wheels import Chip, until

from fpvcar import config
from fpvcar.depth.camera import DepthCamera, Record
from fpvcar.devices import outlier_filter
from fpvcar.devices.chips import hcsr04, vl53l0x
from fpvcar.devices.chips.vl53l0x import Sample, Status, Vl53l0x
from fpvcar.devices.i2c import I2cDevice
from fpvcar.devices.outlier_filter import NOISY
from fpvcar.runtime.texts import State
from fpvcar.sensors.reading import LastReading
from fpvcar.sensors.tof import AGAIN_MOST_S, AGAIN_S, SAME, SAME_MOST, SILENT_S, Tof
from tests.unit.devices.test_hcsr04 import Air, echo
from tests.unit.sensors.test_battery import Stage
from tests.unit.sensors.test_ranges import SOON_S, near, put, sensing

OFF_M = 0.7


class Bench(Rig):
    """VL53L0X in the state of its thread."""

    def __init__(self) -> None:
        super().__init__(range_m=0.6)
        self.reading = LastReading("front", 0.0)
        self.tof = Tof(config.Tof(), self.reading, None, self.open, self.clock_s)

    def run(self, seconds: float) -> list[State]:
        """Run the thread's turns; return every state of the reading."""
        end_s, states = self.now_s + seconds, [self.reading.state]
        while self.now_s < end_s:
            self.now_s = max(self.now_s, self.tof.due_s)
            self.tof.turn()
            if self.reading.state != states[-1]:
                states.append(self.reading.state)
        return states


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench()
    monkeypatch.setattr("fpvcar.sensors.tof.time.sleep", bench.sleep)
    return bench


def test_absent_tof_is_reported_and_recovers(bench: Bench) -> None:
    bench.absent = True
    bench.run(2.0)
    reported = bench.reading.status(bench.now_s)
    assert reported.state == NOBODY and reported.age_s is None
    bench.absent = False
    assert bench.run(AGAIN_MOST_S)[-1] == "ok"


def test_tof_that_stays_absent_is_tried_less_often(bench: Bench) -> None:
    bench.absent = True
    bench.run(60.0)
    assert bench.tries <= 11
    bench.absent = False
    bench.run(2 * AGAIN_MOST_S)
    bench.absent, bench.tries = True, 0
    bench.fails_at = bench.transfers + 1
    bench.run(3.0)
    assert bench.tries >= 2, "and one that worked is tried soon"


def test_tof_absent_for_hours_recovers(bench: Bench) -> None:
    bench.absent = True
    bench.run(9000.0)
    assert bench.tries > 1024
    bench.absent = False
    assert bench.run(2 * AGAIN_MOST_S)[-1] == "ok"


def test_silent_tof_is_set_up_again(bench: Bench) -> None:
    bench.run(1.0)
    bench.power = False  # a dip
    assert bench.chip.address
    bench.power = True
    assert bench.chip.address
    bench.sleep(0.01)
    begun_s = bench.now_s
    states = bench.run(3 * SILENT_S)
    assert [str(state) for state in states] == ["ok", "stopped ranging"]
    age_s = bench.reading.status(bench.now_s).age_s
    assert age_s and age_s >= bench.now_s - begun_s
    assert bench.run(2.0)[-1] == "ok"


def test_stuck_tof_is_reported_and_set_up_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run(1.0)
    real = Vl53l0x.read

    def frozen(chip: Vl53l0x, after_s: float) -> Sample | None:
        sample = real(chip, after_s)
        chip.result = b"the same"
        return sample and Sample(0.612, Status.OK)

    monkeypatch.setattr(Vl53l0x, "read", frozen)
    states = bench.run(SAME_MOST * 0.034 + AGAIN_S)
    assert states == ["ok", SAME(count=SAME_MOST), "ok"], "it is set up anew"
    monkeypatch.setattr(Vl53l0x, "read", real)
    assert bench.run(SAME_MOST * 0.05) == ["ok"]


def test_tof_before_a_still_wall_is_not_stuck(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A range constant to the millimetre, before a white wall: but the light changes."""
    real, number = Vl53l0x.read, 0

    def still(chip: Vl53l0x, after_s: float) -> Sample | None:
        nonlocal number
        sample, number = real(chip, after_s), number + 1
        chip.result = bytes((number & 0xFF, 0x32))
        return sample and Sample(0.05, Status.OK)

    bench.run(1.0)
    monkeypatch.setattr(Vl53l0x, "read", still)
    assert bench.run(SAME_MOST * 0.05) == ["ok"]


def test_tof_without_target_or_too_near_is_not_stuck(bench: Bench) -> None:
    for range_m in (math.inf, 0.01):
        bench.range_m = range_m
        bench.run(1.0)
        assert bench.run(SAME_MOST * 0.05) == ["ok"]


def test_noisy_tof_is_reported_with_its_age(bench: Bench) -> None:
    bench.run(1.0)
    bench.chip.off_m = OFF_M
    assert NOISY in bench.run(1.0)
    bench.run(1.0)
    reported = bench.reading.status(bench.now_s)
    assert reported.state == NOISY and reported.age_s and reported.age_s > 0.5
    assert reported.range_m is not None and reported.range_m < 0.3, "the nearest that it says"
    bench.chip.off_m = 0.0
    assert bench.run(1.0)[-1] == "ok"


def test_tof_needs_few_transfers_and_loses_no_sample(bench: Bench) -> None:
    """A sample takes a little more than one look, each with one transfer, and one transfer that
    clears it."""
    bench.run(2.0)
    readings, transfers = bench.reading.readings, bench.transfers
    bench.run(10.0)
    readings = bench.reading.readings - readings
    assert readings >= 300
    assert bench.transfers - transfers <= 2.4 * readings


def test_noisy_sonar_is_reported_and_recovers() -> None:
    dice = random.Random(1)
    air = Air(lambda: echo(dice.randrange(600, 8000)))
    sensor = air.sensor()
    statuses = [sensor.measure().status for _ in range(40)]
    assert hcsr04.Status.OK in statuses[:6] and statuses.count(hcsr04.Status.NOISY) > 25
    air.answers = lambda: echo(5800)
    assert [sensor.measure().status for _ in range(12)][-1] is hcsr04.Status.OK


def test_median_hides_one_wrong_echo_in_five() -> None:
    widths = iter([5800, 5800, 1200, 5800, 5800] * 20)
    sensor = Air(lambda: echo(next(widths))).sensor()
    ranges = [sensor.measure().range_m for _ in range(100)]
    assert all(one == pytest.approx(1.0, abs=0.01) for one in ranges[3:])


def test_loose_battery_contact_is_noisy_and_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)
    stage.run(1.0)
    before = stage.sensor.status(stage.now_s)
    volts = iter([0.4, 7.5] * 100)
    monkeypatch.setattr(stage.chip, "_volts", lambda: next(volts))
    stage.run(2.0)
    reported = stage.sensor.status(stage.now_s)
    assert before and reported and reported.state == NOISY
    assert reported.age_s and reported.age_s > 0.5 and reported.share and reported.share > 0.3
    monkeypatch.setattr(stage.chip, "_volts", lambda: 7.5)
    stage.run(2.0)
    assert stage.sensor.state == "ok"


def test_throttle_spurts_are_not_noisy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Throttle to and fro as fast as a thumb can: three readings each."""
    stage = Stage(monkeypatch)
    volts = iter(([7.5] * 3 + [5.4] * 3) * 100)
    monkeypatch.setattr(stage.chip, "_volts", lambda: next(volts))
    stage.run(10.0)
    assert NOISY not in stage.states and stage.sensor.state == "ok"


def test_noisy_depth_camera_is_reported_and_recovers() -> None:
    reading, now_s = LastReading("depth", 0.0), 50.0
    camera = DepthCamera([], reading, lambda: now_s)
    for number in range(3 * outlier_filter.LAST):
        now_s += 1 / 15
        camera._take_record(Record(0.4 if number % 2 else 2.0, int(now_s * 1e6), b""))
    reported = reading.status(now_s)
    assert reported.state == NOISY and reported.age_s and reported.age_s > 0.5
    for _ in range(2 * outlier_filter.LAST):
        now_s += 1 / 15
        camera._take_record(Record(math.inf, int(now_s * 1e6), b""))
    reported = reading.status(now_s)
    assert (reported.state, reported.range_m) == ("ok", None)
    assert reported.age_s is not None and reported.age_s < 0.01


class Never(I2cDevice):
    """Device that identifies as a VL53L0X, and is never ready."""

    def read(self, register: int, size: int) -> bytes:
        if register == vl53l0x.Register.RESULT_INTERRUPT_STATUS:
            return bytes(size)
        return vl53l0x.IDENTITY if size == 3 else b"\x08" * size

    def write(self, register: int, data: bytes) -> None:
        pass

    def close(self) -> None:
        pass


def test_tof_that_is_never_ready_delays_no_other(bench: Bench) -> None:
    ill = Tof(
        config.Tof(), LastReading("ill", 0.0), None, lambda bus, address: Never(), bench.clock_s
    )
    bench.run(1.0)
    oldest_s, statuses = 0.0, set[str]()
    for _ in range(2000):
        first = min(bench.tof, ill, key=lambda one: one.due_s)
        bench.now_s = max(bench.now_s, first.due_s)
        oldest_s = max(oldest_s, bench.reading.status(bench.now_s).age_s or 0.0)
        first.turn()
        statuses.add(str(ill.reading.state))
    assert "reference calibration not ready after 0.1 s" in statuses
    assert bench.reading.state == "ok" and oldest_s < 0.2


# --- through the emulated daemon ----------------------------------------------


@pytest.fixture
def noisy(tmp_path: Path) -> Iterator[Chip]:
    """Yield a chip on which both range sensors of the bench's car have the fault."""
    chip = Chip(tmp_path, f"--i2c=1:0:vl53l0x:4:{OFF_M}", f"--hcsr04=20,21,3,{OFF_M}")
    put(chip, 0.8, 1.5)
    try:
        yield chip
    finally:
        chip.end()


def test_both_range_sensors_are_noisy_on_the_bench(noisy: Chip) -> None:
    with sensing(noisy) as reported:
        until(lambda: [one.state for one in reported()] == [NOISY, NOISY], SOON_S, "not said")
        assert not any(near(one, 0.8) for one in reported())
