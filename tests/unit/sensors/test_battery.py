"""Battery gauge with real thread, driver and emulated chip; ages, absence, faults."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec
import pytest
from testkit.pins.wheels import Chip, until

from fpvbench import soc as chips
from fpvbench.chips import ina219 as model
from fpvbench.chips.i2c import Bus, Nack
from fpvcar import config
from fpvcar.config import profiles
from fpvcar.devices import backends
from fpvcar.devices.chips import ina219
from fpvcar.devices.i2c import I2cDevice, I2cError
from fpvcar.runtime import paths
from fpvcar.runtime.texts import STARTING, State, Text
from fpvcar.sensors import battery as battery_module
from fpvcar.sensors.battery import BATTERY_EVERY_S, SILENT_S, YOUNG_S, BatterySensor
from fpvcar.wire import telemetry

BENCH = paths.HARDWARE / "bench.toml"
SOON_S = 20.0
NACK = Text("nack", "no chip acknowledges")


@pytest.fixture
def chip(tmp_path: Path) -> Iterator[Chip]:
    with Chip(tmp_path, "--i2c=1:0x40:ina219") as chip:
        with chips.writing(chip.soc.world) as world:
            world.battery_v, world.battery_a = 7.5, 0.4
        yield chip


@contextmanager
def measuring(chip: Chip) -> Iterator[Callable[[], telemetry.Battery]]:
    """Yield the reading of the gauge of the bench's car."""
    sensor = BatterySensor(profiles.load(BENCH, [f"pins.port = {chip.port}"]))
    sensor.start()

    def status_now() -> telemetry.Battery:
        battery = sensor.status(time.monotonic())
        assert battery is not None
        return battery

    try:
        yield status_now
    finally:
        sensor.stop()


def fresh(battery: telemetry.Battery) -> bool:
    return battery.state == "ok" and battery.age_s is not None and battery.age_s < 0.5


def test_battery_is_read_and_young(chip: Chip) -> None:
    with measuring(chip) as status_now:
        until(lambda: fresh(status_now()), SOON_S, "no battery")
        battery = status_now()
        assert battery.volts == pytest.approx(7.5, abs=0.1)
        assert battery.amps == pytest.approx(0.4, abs=0.1)
        assert battery.share and 0.4 < battery.share < 0.8 and not battery.low


def test_dead_daemon_leaves_an_ageing_reading(chip: Chip) -> None:
    with measuring(chip) as status_now:
        until(lambda: fresh(status_now()), SOON_S, "no battery")
        chip.kill_pigpiod()
        until(lambda: status_now().state != "ok", SOON_S, "an old reading is shown as new")
        first = status_now()
        assert first.volts == pytest.approx(7.5, abs=0.1)
        until(lambda: (status_now().age_s or 0.0) > 0.3, SOON_S, "its age stands still")
        until(lambda: "refused" in str(status_now().state), SOON_S, "nothing is said")
        chip.restart_pigpiod()
        until(lambda: fresh(status_now()), SOON_S, "not connected again")


def test_hung_daemon_is_reported(chip: Chip) -> None:
    with measuring(chip) as status_now:
        until(lambda: fresh(status_now()), SOON_S, "no battery")
        chip.stop_pigpiod()
        until(lambda: status_now().state != "ok", SOON_S, "nothing is said")
        chip.continue_pigpiod()
        until(lambda: fresh(status_now()), SOON_S, "not connected again")


def test_missing_sensor_is_reported_with_its_address(tmp_path: Path) -> None:
    with Chip(tmp_path) as chip, measuring(chip) as status_now:
        until(lambda: "0x40" in str(status_now().state), SOON_S, "nothing is said")
        assert (status_now().volts, status_now().age_s) == (None, None)


def test_car_without_a_gauge_has_no_status() -> None:
    profile = profiles.load(BENCH)
    sensor = BatterySensor(msgspec.structs.replace(profile, battery=config.Battery()))
    sensor.start()
    until(lambda: sensor.state == "none", SOON_S, str(sensor.state))
    assert sensor.status(time.monotonic()) is None
    sensor.stop()
    assert sensor._thread and not sensor._thread.is_alive(), "it does not end"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_failed_thread_ends_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    sensor = BatterySensor(profiles.load(BENCH))

    def fail() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(sensor, "_run", fail)
    sensor.start()
    with pytest.raises(RuntimeError, match="has failed"):
        asyncio.run(asyncio.wait_for(sensor.watch(), 20.0))
    assert sensor._thread is not None
    sensor._thread.join(20.0)  # its traceback belongs to this test


# --- the thread's body on a model, with a clock of our own ---------------------


class Stage(I2cDevice):
    """Sensor on the model, over the other back end; `pause` advances the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s, self.begun, self.closed = 100.0, 0, 0
        self.transfers, self.fails_at = 0, -1
        self.chip_s: float | None = None
        self.chip = model.Ina219(
            lambda: 7.5, lambda: 0.4, clock_s=lambda: self.chip_s or self.now_s
        )
        profile = profiles.load(BENCH, ['i2c.backend = "linux"'])
        self.sensor = BatterySensor(profile, lambda: self.now_s)
        self.states: list[State] = []
        self.end_s = 0.0
        monkeypatch.setattr(backends, "open_i2c", lambda _: nullcontext(self.opened))
        monkeypatch.setattr(self.sensor, "pause", self.pause)

    def opened(self, bus: int, address: int) -> "Stage":
        assert (bus, address) == (1, 0x40)
        self.begun += 1
        return self

    def run(self, seconds: float) -> None:
        self.end_s = self.now_s + seconds
        self.sensor.ending = False
        self.sensor.live()

    def pause(self, seconds: float) -> None:
        if not self.states or self.states[-1] != self.sensor.state:
            self.states.append(self.sensor.state)
        self.now_s += max(0.0, seconds)
        self.sensor.ending = self.now_s >= self.end_s

    def read(self, register: int, size: int) -> bytes:
        self._transfer(bytes((register,)))
        return self.chip.read(size)

    def write(self, register: int, data: bytes) -> None:
        self._transfer(bytes((register,)) + data)

    def close(self) -> None:
        self.closed += 1

    def _transfer(self, data: bytes) -> None:
        self.transfers += 1
        if self.transfers == self.fails_at:
            raise I2cError(NACK)
        self.chip.write(data)


def test_thread_wakes_once_per_reading_and_stays_current(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)
    stage.run(2.0)
    assert stage.sensor.readings == pytest.approx(2.0 / BATTERY_EVERY_S, abs=2)
    assert stage.transfers <= 3 * stage.sensor.readings + 8
    assert stage.begun == stage.closed == 1
    status_now = stage.sensor.status(stage.now_s + 0.05)
    assert status_now and status_now.age_s == pytest.approx(0.05, abs=BATTERY_EVERY_S)
    assert stage.states == [STARTING, "ok"]


def test_volts_are_given_only_while_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)
    assert stage.sensor.volts(stage.now_s) is None
    stage.run(1.0)
    assert stage.sensor.volts(stage.now_s) == pytest.approx(7.5, abs=0.01)
    assert stage.sensor.volts(stage.now_s + YOUNG_S + 0.1) is None


def test_chip_that_stops_converting_is_reported_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chip answers with a constant value: the ready flag shows the fault."""
    stage = Stage(monkeypatch)
    stage.run(1.0)
    before = stage.sensor.status(stage.now_s)
    stage.chip_s = stage.now_s
    stage.run(SILENT_S + 2 * BATTERY_EVERY_S)
    assert str(stage.sensor.state) == f"INA219: no new average for {SILENT_S} s"
    status_now = stage.sensor.status(stage.now_s)
    assert before and status_now and status_now.volts == before.volts
    assert status_now.age_s and status_now.age_s > SILENT_S
    stage.chip_s = None
    stage.run(battery_module.AGAIN_S + 1.0)
    assert stage.sensor.state == "ok"


TRANSFERS = 12
"""Transfers of the set-up and more than two readings."""


@pytest.mark.parametrize("fails_at", range(1, TRANSFERS + 1))
def test_fault_at_any_transfer_is_reported_and_recovered(
    monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    stage = Stage(monkeypatch)
    stage.fails_at = fails_at
    stage.run(battery_module.AGAIN_S + 1.0)
    assert stage.transfers > TRANSFERS
    assert NACK in stage.states
    assert stage.sensor.state == "ok" and stage.begun == stage.closed == 2


def test_model_converts_in_68_ms_and_nacks_other_addresses() -> None:
    """Two averages of 64 samples are 68 ms; CNVR falls when POWER is read."""
    now_s = 5.0
    chip = model.Ina219(lambda: 7.5, lambda: 0.4, clock_s=lambda: now_s)

    def ready() -> bool:
        chip.write(bytes((ina219.Register.BUS,)))
        return bool(chip.read(2)[1] & ina219.READY)

    chip.write(bytes((0,)) + ina219.SETTING.to_bytes(2, "big"))
    assert not ready()
    now_s += 0.067
    assert not ready()
    now_s += 0.002
    assert ready() and ready()
    chip.write(bytes((ina219.Register.POWER,)))
    chip.read(2)
    assert not ready()
    with pytest.raises(Nack):
        Bus(chip).read(0x41, 1)


def test_sagging_pack_is_weak_for_a_while() -> None:
    """A Pi Zero has no detector of under-voltage."""
    sensor = BatterySensor(profiles.load(BENCH))
    assert not sensor.weak(0.0)
    for at_s, volts in ((1.0, 5.7), (2.0, 5.6), (3.0, 5.5), (3.1, 7.0)):
        sensor._take(ina219.Reading(volts, 3.0), at_s)
        assert sensor.weak(at_s) == (at_s >= 3.0), volts
    assert sensor.weak(5.0) and not sensor.weak(5.1)
