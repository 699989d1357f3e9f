"""Ends of servos' pulses, with the survivors of each back end: no pulse is cut short.

The script in pigpiod: tests/unit/fpvbench/pigpiod/test_deadman.py.
"""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from testkit.pins.fake_pins import FakePins
from testkit.pins.hat import hat

from fpvbench.kernel_pwm import FakePwm
from fpvcar.config import profiles
from fpvcar.devices import backends
from fpvcar.devices.chips import pca9685
from fpvcar.devices.chips.pca9685 import Pca9685
from fpvcar.devices.i2c import Open
from fpvcar.devices.linux import gpiochip, pins_off
from fpvcar.devices.linux.gpio import LinuxBoard, LinuxPins, MotorPinHold
from fpvcar.devices.linux.kernel_pwm import KernelPwm
from fpvcar.devices.linux.pulses import Pulses, Schedule
from fpvcar.devices.motors.hat_board import DISABLED, HatBoard, Switch
from fpvcar.devices.pins import CYCLE_S
from fpvcar.runtime import paths
from tests.unit.devices.test_linux_pins import FakeChip

PULSE_US, PERIOD_S = 1500.0, 0.02
KERNEL = profiles.load(
    paths.HARDWARE / "l298n.toml",
    (
        'pins.backend = "linux"',
        "pins.pwm = [13, 12]",
        "pins.unsafe = true",
        "motors.drive.enable = 12",
        "motors.drive.pwm_hz = 1000",
        "motors.steer = {}",
        'motors.steer.driver = "servo"',
        "motors.steer.signal = 13",
    ),
)
LINES = profiles.load(
    paths.HARDWARE / "mx1508-servo.toml", ('pins.backend = "linux"', "pins.unsafe = true")
)
HAT = profiles.load(paths.HARDWARE / "motor-hat.toml", ("pca9685.oe = 4", "servos.pan.channel = 0"))


# The kernel's PWM: duty 0 takes effect after the pulse under way, and a disabled channel at once


class Writes:
    """Values of a channel over time."""

    def __init__(self, pwm: FakePwm) -> None:
        self._pwm, self.all = pwm, list[tuple[float, int, str, str]]()

    def note(self, channel: int) -> None:
        duty, enabled = (self._pwm.value(channel, name) for name in ("duty_cycle", "enable"))
        self.all.append((time.monotonic(), channel, duty, enabled))

    def waited_s(self, channel: int) -> float:
        """Return the shortest time between a duty of 0 and the end of the channel."""
        waits, zero_s, before = list[float](), 0.0, "0"
        for at_s, _, duty, enabled in (write for write in self.all if write[1] == channel):
            if before == "1" and enabled == "0":
                waits.append(at_s - zero_s if zero_s else 0.0)
            zero_s = (zero_s or at_s) if (duty, enabled) == ("0", "1") else 0.0
            before = enabled
        return min(waits)


@pytest.fixture
def pwm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePwm:
    monkeypatch.setattr(pins_off, "PWM_CLASS", "")
    monkeypatch.setattr(pins_off, "store", pins_off.store)
    monkeypatch.setattr(gpiochip, "find", FakeChip)
    made = FakePwm(tmp_path / "sys")
    made.install()
    return made


@pytest.fixture
def writes(pwm: FakePwm, monkeypatch: pytest.MonkeyPatch) -> Writes:
    made = Writes(pwm)
    monkeypatch.setattr(pwm, "changed", made.note)
    return made


def drive_kernel(folder: Path, writes: Writes) -> LinuxBoard:
    """Return a board whose motor and steering servo run."""
    board = LinuxBoard(KERNEL, folder / "guardian.lock")
    for number, driver in enumerate(board.drivers):
        driver.drive(0.0, 1.0)
        driver.drive(0.5, 2.0 + number)
        driver.tick(3.0 + number)
    del writes.all[:-2]  # the drives' last writes: both channels run
    return board


def test_closed_board_stops_the_motor_first_and_then_ends_a_whole_pulse(
    pwm: FakePwm, writes: Writes, tmp_path: Path
) -> None:
    drive_kernel(tmp_path, writes).close()
    assert writes.waited_s(1) >= PERIOD_S
    assert next(channel for _, channel, *_ in writes.all[2:]) == 0


def test_guardian_stops_the_motor_first_and_then_ends_a_whole_pulse(
    pwm: FakePwm, writes: Writes, tmp_path: Path
) -> None:
    board = drive_kernel(tmp_path, writes)
    MotorPinHold((), KERNEL.stop_pwm())()
    assert writes.waited_s(1) >= PERIOD_S
    assert next(channel for _, channel, *_ in writes.all[2:]) == 0
    board.dead_man.kill()


def test_helper_ends_a_whole_pulse_as_the_published_pins_say(
    pwm: FakePwm, writes: Writes, tmp_path: Path
) -> None:
    board = drive_kernel(tmp_path, writes)
    assert KERNEL.stop_pwm() == ((12, "auto"), (13, "auto", 0))
    assert pins_off.stop((), (), pins_off.parse("pwm-12:auto pwm-13:auto:0")[2]) == 0
    assert writes.waited_s(1) >= PERIOD_S
    board.dead_man.kill()


def test_next_wheels_end_a_whole_pulse_of_a_pan_servo_before_they_begin(
    pwm: FakePwm, writes: Writes
) -> None:
    profile = profiles.load(
        paths.HARDWARE / "pan-tilt.toml", ('pins.backend = "linux"', "pins.pwm = [12, 13]")
    )
    for _ in range(2):
        with backends.open_servos(profile) as (pins, _):
            assert pins is not None
            pins.servo(12, PULSE_US)
    assert writes.waited_s(0) >= PERIOD_S
    assert pwm.duty(0) > 0.0


def test_end_of_pulses_leaves_the_channel_to_finish(pwm: FakePwm, writes: Writes) -> None:
    pins = LinuxPins("a test", KernelPwm((13,), "auto", {13: 0}))
    pins.servo(13, PULSE_US)
    pins.servo(13, 0.0)
    assert (pwm.value(1, "duty_cycle"), pwm.value(1, "enable")) == ("0", "1")
    pins.close()


# The kernel's pins, without PWM


def test_pulse_under_way_is_known_from_rise_to_fall() -> None:
    schedule = Schedule()
    assert not schedule.high(13)
    schedule.run(13, PERIOD_S, 0.0015, 5.0)
    assert schedule.due(5.009) == {13: 1} and schedule.high(13)
    assert schedule.next_s == 5.0105, "a late first rise shortens no pulse"
    assert schedule.due(5.0105) == {13: 0} and not schedule.high(13)


def test_end_of_pulses_waits_for_the_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpiochip, "find", FakeChip)
    pins = LinuxPins("a test")
    pins.servo(13, 2500.0)
    states = [True, True, False]
    monkeypatch.setattr(pins._pulses._schedule, "high", lambda gpio: states.pop(0))
    pins.servo(13, 0.0)
    assert states == [] and 13 not in pins._pulses._schedule._waves
    pins.close()


def test_hung_pulse_thread_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpiochip, "find", FakeChip)
    pins = LinuxPins("a test")
    pins.servo(13, 2500.0)
    monkeypatch.setattr(pins._pulses._schedule, "high", lambda gpio: True)
    pins.servo(13, 0.0)
    assert 13 not in pins._pulses._schedule._waves
    pins.close()


def test_closed_board_finishes_the_pulses_of_its_steering_after_the_motor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chip = FakeChip()
    monkeypatch.setattr(gpiochip, "find", lambda: chip)
    board = LinuxBoard(LINES, tmp_path / "guardian.lock")
    board.drivers[1].drive(1.0, 1.0)
    finished: list[tuple[int, bool]] = []

    def finish(pulses: Pulses, gpio: int) -> None:
        finished.append((gpio, {17: 0, 27: 0} in chip.sets))

    monkeypatch.setattr(Pulses, "finish", finish)
    board.close()
    assert finished == [(18, True)]


# The PCA9685: all-off takes effect after the pulse under way, SLEEP and OE at once


class HatCar:
    """Chip with motors and a pan servo; the times of each write and of OE."""

    def __init__(self, folder: Path) -> None:
        self.soc, self.wire = hat(folder)
        self.lock, self.off_s, self.cut_s = folder / "guardian.lock", 0.0, list[float]()
        self.oe: Any = FakePins(lambda _: self._oe_changed())
        setattr(self.oe, "close", lambda: None)  # noqa: B010
        write = self.wire.write

        def noted(register: int, data: bytes) -> None:
            asleep = self.soc.hat.registers[pca9685.MODE1] & pca9685.SLEEP
            write(register, data)
            if register == pca9685.ALL_OFF_H and data:
                self.off_s = time.monotonic()
            elif register == pca9685.MODE1 and data and data[0] & pca9685.SLEEP and not asleep:
                self.cut_s.append(time.monotonic())

        self.wire.write = noted  # type: ignore[method-assign]

    def _oe_changed(self) -> None:
        if self.oe.duty(4) == DISABLED:
            self.cut_s.append(time.monotonic())

    @contextmanager
    def buses(self) -> Iterator[Open]:
        yield lambda bus, address: self.wire

    def run(self) -> HatBoard:
        board = HatBoard(HAT, self.buses, lambda: self.oe, self.lock)
        Pca9685(self.wire, 50, fresh=False).servo(0, PULSE_US)
        self.cut_s.clear()
        return board


def test_oe_follows_after_the_last_pulse_of_a_servo(tmp_path: Path) -> None:
    car = HatCar(tmp_path)
    board = car.run()
    Switch(HAT, car.buses, lambda: car.oe)()
    assert car.soc.hat.duty(0) == 0.0 and car.cut_s[0] - car.off_s >= PERIOD_S
    board.dead_man.kill()


def test_chip_sleeps_after_the_last_pulse_of_a_servo(tmp_path: Path) -> None:
    car = HatCar(tmp_path)
    car.run().dead_man.kill()
    Pca9685(car.wire, 50)
    assert car.cut_s and car.cut_s[0] - car.off_s >= 0.019


def test_helper_waits_for_the_last_pulse_before_oe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    bus = tmp_path / "i2c-1"
    bus.touch()
    monkeypatch.setattr(pins_off, "I2C", str(tmp_path / "i2c-{}"))
    monkeypatch.setattr(fcntl, "ioctl", lambda *_: 0)
    monkeypatch.setattr(time, "sleep", slept.append)
    assert HAT.stop_chips() == ((1, 0x60, 0, 0),)
    assert pins_off.stop((), pins_off.parse("i2c-1:0x60:0:0")[1]) == 0
    assert slept == [CYCLE_S] and bus.read_bytes() == pins_off.ALL_LED_OFF
