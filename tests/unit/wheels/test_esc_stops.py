"""Stops of an ESC on the kernel's PWM and on a PCA9685: neutral, held, then whole silence."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pigpio
import pytest
from testkit.pins.fake_pins import FakePins
from testkit.pins.hat import ADDRESS, hat
from testkit.pins.pigpio_clients import stop
from testkit.pins.wheels import START_S, Chip
from testkit.stops.pulses import PulseTrace, stop_faults

from fpvbench.kernel_pwm import FakePwm
from fpvcar.config import profiles
from fpvcar.devices import backends
from fpvcar.devices import pins as pins_module
from fpvcar.devices.chips import pca9685
from fpvcar.devices.i2c import I2cError, Open
from fpvcar.devices.linux import gpiochip, pins_off
from fpvcar.devices.linux.gpio import LinuxBoard, MotorPinHold
from fpvcar.devices.linux.kernel_pwm import KernelPwm
from fpvcar.devices.motors.hat_board import DISABLED, ENABLED, HatBoard, Switch
from fpvcar.devices.pigpio.dead_man import script
from fpvcar.devices.pins import PinsLost
from fpvcar.runtime import paths
from fpvcar.wheels.pins_off_client import words_of
from tests.unit.devices.test_linux_pins import FakeChip

NEUTRAL_US = 1500.0
KERNEL = profiles.load(paths.HARDWARE / "rc-esc.toml", ("pins.unsafe = true",))
HAT = profiles.load(paths.HARDWARE / "rc-esc-hat.toml")
STEP_US = 5.0


def test_hold_is_the_same_in_the_process_without_imports() -> None:
    assert (pins_off.HOLD_S, pins_off.CYCLE_S) == (pins_module.HOLD_S, pins_module.CYCLE_S)
    assert pins_off.HOLD_S >= 3 * 0.02 + 0.02 and pins_off.CYCLE_S >= 1 / 40


def test_judge_finds_wrong_stops() -> None:
    def judged(*widths: float, held_s: float = 0.1) -> list[str]:
        times = iter(range(0, 10**12, round(held_s * 1e9)))
        trace = PulseTrace(clock_ns=lambda: next(times))
        for width in widths:
            trace.note(width)
        return stop_faults(trace.all, NEUTRAL_US)

    assert judged(1700.0, 1500.0, 0.0) == []
    assert judged(1700.0, 0.0) != [] and judged(1700.0, 1300.0, 1500.0, 0.0) != []
    assert judged(1700.0, 1500.0, 0.0, held_s=0.036) != []


# The kernel's PWM


@pytest.fixture
def pwm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePwm:
    monkeypatch.setattr(pins_off, "PWM_CLASS", "")
    monkeypatch.setattr(pins_off, "store", pins_off.store)
    monkeypatch.setattr(gpiochip, "find", FakeChip)
    made = FakePwm(tmp_path / "sys")
    made.install()
    return made


@pytest.fixture
def trace(pwm: FakePwm, monkeypatch: pytest.MonkeyPatch) -> PulseTrace:
    """Each change of the ESC's pulses."""
    made = PulseTrace()

    def changed(channel: int) -> None:
        if channel == 0:
            made.note(pwm.duty(0) * 20_000)

    monkeypatch.setattr(pwm, "changed", changed)
    return made


def drive_kernel(folder: Path) -> LinuxBoard:
    board = LinuxBoard(KERNEL, folder / "guardian.lock")
    esc, _ = board.drivers
    for step in range(70):
        esc.drive(0.3 if step == 69 else 0.0, step * 0.02)
    return board


def test_closed_board_holds_neutral_and_then_ends_the_pulses(
    pwm: FakePwm, trace: PulseTrace, tmp_path: Path
) -> None:
    board = drive_kernel(tmp_path)
    assert trace.widths[-1] > 1540.0
    board.close()
    assert trace.widths[-2:] == [NEUTRAL_US, 0.0] and pwm.value(0, "enable") == "0"
    assert stop_faults(trace.all, NEUTRAL_US) == []


def test_guardian_holds_neutral_once_although_it_acts_twice(
    pwm: FakePwm, trace: PulseTrace, tmp_path: Path
) -> None:
    board = drive_kernel(tmp_path)
    hold = MotorPinHold((), KERNEL.stop_pwm())
    hold()
    hold()
    assert trace.widths[-2:] == [NEUTRAL_US, 0.0]
    assert stop_faults(trace.all, NEUTRAL_US) == []
    board.dead_man.kill()


def test_pulses_of_a_dead_process_become_neutral_before_the_next_one_starts(
    pwm: FakePwm, trace: PulseTrace, tmp_path: Path
) -> None:
    drive_kernel(tmp_path).dead_man.kill()
    KernelPwm(KERNEL.pins.pwm, "auto", {18: 1500}).close()
    assert trace.widths[-2:] == [NEUTRAL_US, 0.0]
    assert stop_faults(trace.all, NEUTRAL_US) == []


def test_helper_holds_neutral_as_the_published_pins_say(
    pwm: FakePwm, trace: PulseTrace, tmp_path: Path
) -> None:
    drive_kernel(tmp_path).dead_man.kill()
    assert pins_off.stop((), (), pins_off.parse("pwm-18:auto:1500 pwm-13:auto")[2]) == 0
    assert trace.widths[-2:] == [NEUTRAL_US, 0.0]
    assert stop_faults(trace.all, NEUTRAL_US) == []


def test_pwm_that_takes_no_write_is_reported_by_the_helper(
    pwm: FakePwm, trace: PulseTrace, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    drive_kernel(tmp_path).dead_man.kill()
    for name in ("duty_cycle", "enable"):
        (pwm.chip / f"pwm0/broken-{name}").touch()
    assert pins_off.stop((), (), KERNEL.stop_pwm()) == 1
    assert "PWM of GPIO 18: NOT off" in capfd.readouterr().err


def test_published_pins_of_an_esc_are_parsed_and_refused() -> None:
    chip = "i2c-1:0x40:0:1500"
    parsed = pins_off.parse(f"4 {chip} pwm-18:auto:1500")
    assert parsed == ([4], [(1, 0x40, 0, 1500)], [(18, "auto", 1500)])
    for text in ("i2c-1:0x40:0", "i2c-1:0x40:0:x", "pwm-18:auto:x", "pwm-18:auto:1500:2"):
        with pytest.raises(OSError, match="expected a form like"):
            pins_off.parse(text)


# The PCA9685


class Car:
    """Chip, its wire, OE, and a trace of the ESC's pulses."""

    def __init__(self, folder: Path) -> None:
        self.soc, self.wire = hat(folder)
        self.trace, self.lock = PulseTrace(), folder / "guardian.lock"
        self.oe: Any = FakePins(lambda _: self.note())
        setattr(self.oe, "close", lambda: None)  # noqa: B010
        write = self.wire.write

        def noted(register: int, data: bytes) -> None:
            write(register, data)
            self.note()

        self.wire.write = noted  # type: ignore[method-assign]

    def note(self) -> None:
        enabled = self.oe.duty(4) == ENABLED
        self.trace.note(self.soc.hat.duty(0) * self.soc.hat.period_us() * enabled)

    @contextmanager
    def buses(self) -> Iterator[Open]:
        yield lambda bus, address: self.wire

    def board(self) -> HatBoard:
        return HatBoard(HAT, self.buses, lambda: self.oe, self.lock)

    def drive(self) -> HatBoard:
        board = self.board()
        for step in range(70):
            board.drivers[0].drive(0.3 if step == 69 else 0.0, step * 0.02)
        assert self.trace.widths[-1] > 1540.0
        return board


@pytest.fixture
def car(tmp_path: Path) -> Car:
    return Car(tmp_path)


def neutral_then_none(car: Car) -> None:
    neutral, none = car.trace.widths[-2:]
    assert neutral == pytest.approx(NEUTRAL_US, abs=STEP_US) and none == 0.0
    assert stop_faults(car.trace.all, NEUTRAL_US) == []


def test_closed_board_holds_neutral_before_all_off_and_oe(car: Car) -> None:
    car.drive().close()
    neutral_then_none(car)
    assert car.oe.duty(4) == DISABLED


def test_switch_holds_neutral_once_although_the_guardian_calls_it_twice(car: Car) -> None:
    board = car.drive()
    switch = Switch(HAT, car.buses, lambda: car.oe)
    switch()
    switch()
    neutral_then_none(car)
    board.dead_man.kill()


def test_next_board_sends_neutral_to_a_running_esc_before_it_sleeps(car: Car) -> None:
    car.drive().dead_man.kill()
    car.wire.writes.clear()
    board = car.board()
    neutral_then_none(car)
    first = [register for register, data in car.wire.writes if data]
    assert first.index(pca9685.ALL_OFF_H) < first.index(pca9685.PRE_SCALE)
    restarts = [data for register, data in car.wire.writes if register == 0 and data]
    assert not any(data[0] & pca9685.RESTART for data in restarts)
    board.close()


def test_failed_bus_is_cut_by_oe_at_once(car: Car) -> None:
    board = car.drive()
    car.wire.failing = 100
    board.close()
    assert car.oe.duty(4) == DISABLED and car.trace.widths[-1] == 0.0
    car.wire.failing = 0


def test_helper_without_imports_holds_neutral_too(car: Car) -> None:
    car.drive().dead_man.kill()

    def write(register: int, *data: int) -> None:
        car.wire.write(register, bytes(data))

    pins_off.hat_neutral(lambda register: car.wire.read(register, 1)[0], write, 0, NEUTRAL_US)
    write(pca9685.ALL_OFF_H, 0x10)
    neutral_then_none(car)
    pins_off.hat_neutral(lambda register: car.wire.read(register, 1)[0], write, 0, NEUTRAL_US)
    assert car.trace.widths[-1] == 0.0, "a silent ESC stays silent"


def test_helper_of_the_bench_holds_neutral_by_the_words_of_the_profile(
    car: Car, tmp_path: Path
) -> None:
    for oe in ((), (4,)):
        car.drive().dead_man.kill()
        stops = words_of(oe, [(1, ADDRESS, 0, round(NEUTRAL_US))])
        argv = [sys.executable, "-m", "fpvbench.pins_off", f"--soc={tmp_path}/soc", *stops]
        with subprocess.Popen(argv) as helper:
            ended_s = 0.0
            trace = PulseTrace(polled=True)
            while not ended_s or time.monotonic() < ended_s + 0.1:
                trace.note(car.soc.hat.duty(0) * car.soc.hat.period_us())
                if not ended_s and helper.poll() is not None:
                    ended_s = time.monotonic()
                time.sleep(0.001)
            assert helper.returncode == 0
        neutral, none = trace.widths[-2:]
        assert neutral == pytest.approx(NEUTRAL_US, abs=STEP_US) and none == 0.0
        assert stop_faults(trace.all, NEUTRAL_US) == []


def test_single_bus_error_at_the_start_is_no_board(car: Car) -> None:
    car.wire.failing = 100
    with pytest.raises((PinsLost, I2cError)):
        HatBoard(HAT, car.buses, lambda: car.oe, car.lock)
    assert car.oe.duty(4) == DISABLED


# pigpiod


def test_script_cuts_no_pulse_short() -> None:
    """`w`, `p` and `bc1` would end a servo's pulse in its middle; `s` does not."""
    words = script((13,), KERNEL.motors.esc)
    assert f"bc1 {1 << 13} " in words and "p 18" not in words and "w 18" not in words
    assert "s 18 1500 mils 100 ld p6 1 tag 2 s 18 0" in words


ON_PIGPIOD = (
    'pins.backend = "pigpio"',
    "pins.pwm = []",
    "motors.drive.esc_loss_s = 0.2",
    'motors.drive.reverse = "direct"',
)


def watch_until_ended(chip: Chip, process: "subprocess.Popen[str]") -> PulseTrace:
    """Poll the ESC's pulses until a process has ended, and a while longer."""
    trace, ended_s = PulseTrace(polled=True), 0.0
    while not ended_s or time.monotonic() < ended_s + 0.4:
        pin = chip.soc.pin[18]
        trace.note(pin.duty() * (pin.pwm & 0xFFFFFFFF))
        if not ended_s and process.poll() is not None:
            ended_s = time.monotonic()
        time.sleep(0.001)
    return trace


def test_doctor_turns_an_armed_esc_both_ways_and_leaves_it_silent(tmp_path: Path) -> None:
    with Chip(tmp_path) as chip:
        lines = (*ON_PIGPIOD, f"pins.port = {chip.port}")
        process = chip.start(
            "fpvcar.wheels.dead_man_selftest",
            f"--profile={paths.HARDWARE / 'rc-esc.toml'}",
            f"--runtime={tmp_path}",
            "--turn=0.3",
            *(f"--set={line}" for line in lines),
        )
        trace = watch_until_ended(chip, process)
    widths = trace.widths
    assert max(widths) > 1540.0 and 0.0 < min(width for width in widths if width) < 1460.0
    assert widths[-2:] == [NEUTRAL_US, 0.0]
    first = next(pulses for pulses in trace.all if pulses.us > 1540.0)
    neutral = next(pulses for pulses in trace.all if pulses.us == NEUTRAL_US)
    assert (first.first_ns - neutral.first_ns) / 1e9 >= 1.0, "throttle before it was armed"


def turning(chip: Chip) -> tuple[str, ...]:
    """Let pigpiod send throttle, as a `wheels` does that is killed; return the helper's words."""
    client = pigpio.pi("127.0.0.1", chip.port)
    assert client.set_servo_pulsewidth(18, 1700) == 0
    stop(client)
    lines = (*ON_PIGPIOD, f"pins.port = {chip.port}")
    profile = profiles.load(paths.HARDWARE / "rc-esc.toml", lines)
    return tuple(words_of(*backends.stops(profile)))


def test_helper_lets_pigpiod_hold_neutral_before_the_pin_is_an_input(tmp_path: Path) -> None:
    with Chip(tmp_path) as chip:
        words = turning(chip)
        assert f"pwm-18:pigpiod@{chip.port}:1500" in words and "18" in words
        (tmp_path / "motor-pins").write_text(" ".join(words))
        helper = subprocess.Popen(
            [sys.executable, "-IS", pins_off.__file__],
            env={"RUNTIME_DIRECTORY": str(tmp_path)},
            stderr=subprocess.PIPE,
            text=True,
        )
        trace = watch_until_ended(chip, helper)
        said = helper.communicate()[1]
    assert trace.widths == [1700.0, NEUTRAL_US, 0.0]
    assert stop_faults(trace.all, NEUTRAL_US) == []
    assert "off: PWM of GPIO 18" in said and "sudo reboot" not in said


@pytest.mark.parametrize("fault", [Chip.kill_pigpiod, Chip.stop_pigpiod])
def test_helper_waits_for_no_pigpiod_that_is_gone_or_hangs(
    tmp_path: Path,
    fault: Callable[[Chip], None],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    freed: list[int] = []
    monkeypatch.setattr(pins_off, "let_go", freed.extend)
    with Chip(tmp_path) as chip:
        stops = pins_off.parse(" ".join(turning(chip)))
        fault(chip)
        begun_s = time.monotonic()
        assert pins_off.stop(*stops) == 0
        took_s = time.monotonic() - begun_s
    assert freed.count(18) == 1, "the last resort: the line is low"
    assert took_s < START_S, "it does not wait without a limit"
    assert "PWM of GPIO 18: " in capfd.readouterr().err
