"""The kernel's PWM without a kernel: the contract, faults of a chip, and processes that die.

Over a real chip of a kernel: tests/vm_sensors/inside_pwm.py.
"""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testkit.pins import pwm_contract
from testkit.pins.wheels import START_S, until

from fpvbench.kernel_pwm import PI_3, RP1, FakePwm
from fpvcar.config import Profile, profiles
from fpvcar.devices import backends
from fpvcar.devices.linux import gpiochip, kernel_pwm, pins_off
from fpvcar.devices.linux.gpio import LinuxBoard, LinuxPins
from fpvcar.devices.linux.kernel_pwm import KernelPwm
from fpvcar.devices.pins import PinsFault, PinsLost, PinsSilent
from fpvcar.runtime import paths
from fpvcar.wheels.pins_off_client import write_pins
from tests.unit.devices.test_linux_pins import FakeChip

FORWARD, REVERSE, LEFT, RIGHT = 12, 13, 24, 23
UNPROVEN_S = 0.3
"""Time for which motors run on after the death of `wheels` and its guardian."""
BOARD = (
    'pins.backend = "linux"',
    f"pins.pwm = [{FORWARD}, {REVERSE}]",
    "pins.unsafe = true",
    f"motors.drive.forward = {FORWARD}",
    f"motors.drive.reverse = {REVERSE}",
    "motors.drive.pwm_hz = 1000",
    "motors.drive.winding_ohm = 5",
    "motors.steer.winding_ohm = 5",
)


@pytest.fixture
def pwm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePwm:
    monkeypatch.setattr(pins_off, "PWM_CLASS", "")
    monkeypatch.setattr(pins_off, "store", pins_off.store)
    made = FakePwm(tmp_path / "sys")
    made.install()
    return made


@pytest.fixture
def chip(monkeypatch: pytest.MonkeyPatch) -> FakeChip:
    made = FakeChip()
    monkeypatch.setattr(gpiochip, "find", lambda: made)
    return made


def car(*overrides: str) -> Profile:
    return profiles.load(paths.HARDWARE / "mx1508.toml", (*BOARD, *overrides))


@pytest.mark.parametrize("name", pwm_contract.CHECKS)
def test_simulated_chip_keeps_the_contract(pwm: FakePwm, name: str) -> None:
    pwm_contract.CHECKS[name](pwm)


@pytest.mark.parametrize(
    ("device", "npwm", "gpio", "channel"),
    [
        (PI_3, 2, 12, 0),
        (PI_3, 2, 18, 0),
        (PI_3, 2, 13, 1),
        (PI_3, 2, 19, 1),
        (RP1, 4, 12, 0),
        (RP1, 4, 13, 1),
        (RP1, 4, 18, 2),
        (RP1, 4, 19, 3),
    ],
)
def test_chip_is_found_by_its_device_not_its_number(
    tmp_path: Path, device: str, npwm: int, gpio: int, channel: int
) -> None:
    FakePwm(tmp_path, "1f0009c000.pwm", 4, number=0)  # the fan of a Pi 5
    wanted = FakePwm(tmp_path, device, npwm, number=3)
    found = pins_off.find_pwm(gpio, pins_off.AUTO, str(wanted.chips))
    assert found == (f"{wanted.chips}/pwmchip3", channel)
    with pytest.raises(OSError, match="no PWM device .*found: 1f0009c000.pwm, .*sudo fpvcar setup"):
        pins_off.find_pwm(17, pins_off.AUTO, str(wanted.chips))


def test_pwm_of_the_overlay_pwm_gpio_is_found_by_its_gpio(tmp_path: Path) -> None:
    FakePwm(tmp_path, PI_3, 2, number=0)
    soft = FakePwm(tmp_path, "pwm_gpio@16", 1, number=1)
    soft.soft(0x16)
    found = pins_off.find_pwm(0x16, pins_off.AUTO, str(soft.chips))
    assert found == (f"{soft.chips}/pwmchip1", 0)


def test_channel_of_another_driver_is_refused_with_the_next_step(pwm: FakePwm) -> None:
    pwm.busy = {1}
    with pytest.raises(PinsLost, match="GPIO 13: .*busy; another driver uses it.*config.txt"):
        KernelPwm((12, 13), pins_off.AUTO)


def test_channel_left_running_and_inverted_is_off_and_normal(pwm: FakePwm) -> None:
    pwm._export(0)
    left = {"period": "2000000", "duty_cycle": "1900000", "enable": "1", "polarity": "inversed"}
    for name, value in left.items():
        (pwm.chip / "pwm0" / name).write_text(f"{value}\n")
    KernelPwm((12,), pins_off.AUTO).close()
    assert pwm.duty(0) == 0.0 and pwm.value(0, "polarity") == "normal"
    assert pwm.value(0, "enable") == "0"


def test_channel_that_udev_does_not_release_says_join_the_group(
    pwm: FakePwm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, flags: int) -> int:
        raise PermissionError(13, "Permission denied", path)

    pwm._export(0)
    monkeypatch.setattr(kernel_pwm, "UDEV_S", 0.02)
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PinsLost, match="pwm0/enable Permission denied; join the group gpio"):
        KernelPwm((12,), pins_off.AUTO)


def test_channel_is_used_once_udev_has_released_it(
    pwm: FakePwm, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [PermissionError(13, "Permission denied")] * 3
    real_open = os.open

    def late(path: str, flags: int) -> int:
        if refusals:
            raise refusals.pop()
        return real_open(path, flags)

    pwm._export(0)
    monkeypatch.setattr(os, "open", late)
    KernelPwm((12,), pins_off.AUTO).close()
    assert not refusals


@pytest.mark.parametrize("broken", ["duty_cycle", "enable"])
def test_one_of_duty_and_enable_is_enough_to_switch_off(pwm: FakePwm, broken: str) -> None:
    running = KernelPwm((12,), pins_off.AUTO)
    running.duty(12, 0.5)
    (pwm.chip / f"pwm0/broken-{broken}").touch()
    pins_off.pwm_off(12, pins_off.AUTO)
    assert pwm.duty(0) == 0.0
    running.close()


def test_pin_whose_pwm_cannot_be_disabled_becomes_an_input(
    pwm: FakePwm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    freed: list[int] = []
    monkeypatch.setattr(pins_off, "let_go", freed.extend)
    running = KernelPwm((12, 13), pins_off.AUTO)
    running.duty(12, 0.5)
    running.duty(13, 0.5)
    for name in ("duty_cycle", "enable"):
        (pwm.chip / f"pwm0/broken-{name}").touch()
    assert pins_off.stop([17], (), [(12, "auto"), (13, "auto")]) == 1
    assert freed == [17, 12] and pwm.duty(1) == 0.0
    told = capsys.readouterr().err
    assert "PWM of GPIO 12: NOT off" in told and "until the next sudo reboot" in told
    running.close()


def test_off_reaches_every_pin_despite_a_fault(pwm: FakePwm) -> None:
    running = KernelPwm((12, 13), pins_off.AUTO)
    running.duty(12, 0.5)
    running.duty(13, 0.5)
    for name in ("duty_cycle", "enable"):
        (pwm.chip / f"pwm1/broken-{name}").touch()
    with pytest.raises(PinsSilent, match="GPIO 13"):
        running.off()
    assert pwm.duty(0) == 0.0
    running.close()


def test_gone_device_is_lost_with_the_next_step(pwm: FakePwm) -> None:
    running = KernelPwm((12,), pins_off.AUTO)
    (pwm.chip / "gone").touch()
    with pytest.raises(PinsSilent, match="GPIO 12: No such device; the device is gone"):
        running.duty(12, 0.5)
    running.close()


def test_pins_of_the_pwm_are_never_claimed_as_gpio(pwm: FakePwm, chip: FakeChip) -> None:
    """The kernel would disconnect them from the PWM."""
    pins = LinuxPins("a test", KernelPwm((FORWARD, REVERSE), pins_off.AUTO))
    pins.set_frequency(FORWARD, 1000)
    pins.pwm(FORWARD, 0.5)
    assert pwm.duty(0) == 0.5
    pins.write_together((FORWARD, REVERSE, LEFT), 1)
    assert pwm.duty(0) == pwm.duty(1) == 1.0 and chip.sets == [{LEFT: 1}]
    pins.write(FORWARD, 0)
    pins.servo(REVERSE, 1500.0)
    assert pwm.duty(0) == 0.0 and pwm.duty(1) == 0.075
    assert [lines.gpios for lines in chip.requests] == [(LEFT,)]
    pins.close()


def board_of(runtime: Path, *overrides: str) -> LinuxBoard:
    board = backends.open_motors(car(*overrides), runtime)
    assert isinstance(board, LinuxBoard)
    return board


def test_closed_board_leaves_channels_disabled(
    pwm: FakePwm, chip: FakeChip, tmp_path: Path
) -> None:
    board = board_of(tmp_path)
    board.drivers[0].drive(0.5, 0.0)
    assert pwm.duty(0) == 0.5
    board.close()
    assert pwm.duty(0) == 0.0 and pwm.value(0, "enable") == "0"
    assert not any(lines.open for lines in chip.requests)


def helper_status(runtime: Path, pid: int) -> int:
    """Run the helper as systemd does, for a request with `pid`; return its status."""
    client, connection = socket.socketpair()
    with client, connection:
        client.send(b"%d" % pid)
        program = str(pins_off.__file__)
        words = ["sh", "-c", 'exec python3 -IS "$1" 3<&0 </dev/null', "sh", program]
        env = {**os.environ, "LISTEN_FDS": "1", "RUNTIME_DIRECTORY": str(runtime)}
        return subprocess.run(words, stdin=connection.fileno(), env=env).returncode


def test_board_shows_the_helper_its_hold_from_the_first_claim_to_its_end(
    pwm: FakePwm, chip: FakeChip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses = [helper_status(tmp_path, 1)]
    request = chip.request

    def observed(*words: Any) -> Any:
        statuses.append(helper_status(tmp_path, 1))
        return request(*words)

    monkeypatch.setattr(chip, "request", observed)
    board = board_of(tmp_path)
    assert statuses == [0, pins_off.NEWER]
    assert helper_status(tmp_path, os.getpid()) == 0, "the same one hangs"
    board.close()
    assert helper_status(tmp_path, 1) == 0


@pytest.mark.parametrize("next_duty", [0.0, 0.3])
def test_late_helper_never_makes_the_other_input_run_alone(
    pwm: FakePwm, chip: FakeChip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, next_duty: float
) -> None:
    """In a brake it would drive the motor backward at full power."""
    board = board_of(tmp_path)
    (drive, _) = board.drivers
    drive.drive(0.3, 0.0)
    drive.drive(0.3, 1.0)
    assert pwm.duty(0) == pytest.approx(0.3)
    pins_off.pwm_off(FORWARD, pins_off.AUTO)
    duties: list[tuple[float, float]] = []
    monkeypatch.setattr(pwm, "changed", lambda channel: duties.append((pwm.duty(0), pwm.duty(1))))
    with contextlib.suppress(PinsLost):
        drive.drive(next_duty, 1.1)
        assert duties[-1] == (1.0, 1.0), "it brakes"
    assert not [pair for pair in duties if pair[0] < pair[1]]
    board.close()
    assert pwm.duty(0) == pwm.duty(1) == 0.0


def test_board_that_cannot_switch_off_leaves_it_to_the_guardian(
    pwm: FakePwm, chip: FakeChip, tmp_path: Path
) -> None:
    """The guardian retries: here the chip recovers."""
    board = board_of(tmp_path)
    board.drivers[0].drive(0.5, 0.0)
    faults = [pwm.chip / f"pwm0/broken-{name}" for name in ("duty_cycle", "enable")]
    for fault in faults:
        fault.touch()
    board.close()
    assert pwm.duty(0) == 0.5
    for fault in faults:
        fault.unlink()
    until(lambda: pwm.duty(0) == 0.0, START_S, "it gave up")


def test_second_board_waits_for_the_guardian_of_the_first(
    pwm: FakePwm, chip: FakeChip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late guardian would switch off the next owner's PWM: the kernel knows no owner."""
    # a busy machine ends a process late
    monkeypatch.setattr("fpvcar.devices.guardian.KILLED_S", START_S)
    first = board_of(tmp_path)
    with (tmp_path / "guardian.lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    guardian = first.dead_man.pid
    os.kill(guardian, signal.SIGSTOP)
    second = board_of(tmp_path)
    second.drivers[0].drive(0.5, 0.0)
    first.dead_man.leave()
    time.sleep(0.1)
    assert pwm.duty(0) == 0.5
    second.close()
    first.close()


class Driving:
    """Process that drives as `wheels` does, with its guardian, until it is killed."""

    def __init__(self, pwm: FakePwm, runtime: Path) -> None:
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._drive(runtime)
            finally:
                os._exit(1)
        until(lambda: pwm.duty(0) > 0.0, START_S, "it does not drive")
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        (self.guardian,) = map(int, children.split())

    def _drive(self, runtime: Path) -> None:
        board = board_of(runtime)
        write_pins(runtime, *car().stops())
        try:
            while True:
                board.dead_man.feed()
                board.drivers[0].drive(0.5 if board.dead_man.awake() else 0.0, time.monotonic())
                time.sleep(0.02)
        except PinsFault:  # as `wheels` does
            board.close()

    def end(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@pytest.fixture
def driving(
    pwm: FakePwm, chip: FakeChip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Driving]:
    """A driving process. It and its guardian have more patience than a car's: a busy machine
    delays either."""
    for limit in ("PATIENCE_S", "ANSWER_S"):
        monkeypatch.setattr(f"fpvcar.devices.guardian.{limit}", 0.8)
    made = Driving(pwm, tmp_path)
    try:
        yield made
    finally:
        made.end()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hung"])
def test_guardian_stops_the_pwm_of_a_dead_or_hung_owner(
    driving: Driving, pwm: FakePwm, number: signal.Signals
) -> None:
    os.kill(driving.pid, number)
    until(lambda: pwm.duty(0) == 0.0, START_S, "it runs on")
    time.sleep(0.1)
    assert pwm.duty(0) == 0.0 and pwm.value(0, "enable") == "0"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hung"])
def test_owner_that_loses_its_guardian_stops(
    driving: Driving, pwm: FakePwm, number: signal.Signals
) -> None:
    os.kill(driving.guardian, number)
    until(lambda: pwm.duty(0) == 0.0, START_S, "it runs on")


def test_last_resort_stops_the_pwm_of_dead_wheels_and_guardian(
    driving: Driving, pwm: FakePwm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ExecStopPost of the unit of `wheels` does this, by the file that `wheels` has written."""
    freed: list[int] = []
    monkeypatch.setattr(pins_off, "let_go", freed.extend)
    os.kill(driving.guardian, signal.SIGSTOP)
    os.kill(driving.pid, signal.SIGKILL)
    os.kill(driving.guardian, signal.SIGKILL)
    time.sleep(UNPROVEN_S)
    assert pwm.duty(0) == 0.5
    assert pins_off.main(str(tmp_path / "motor-pins")) == 0
    assert pwm.duty(0) == 0.0 and freed == [LEFT, RIGHT]
