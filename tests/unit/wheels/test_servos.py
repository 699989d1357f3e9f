"""Servos that do not steer: the real wheels process, and an emulated chip with their pulses."""

import contextlib
import math
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.pins.fake_pins import FakePins
from testkit.pins.wheels import MARGIN_S, START_S, Client, Rig, until

from fpvbench.attached import options_of
from fpvbench.world.bridge import aimed_deg
from fpvcar.config import Profile, profiles
from fpvcar.devices.pins import PinsLost, PinsRefused
from fpvcar.runtime import paths
from fpvcar.wheels.servos import ServoThread
from fpvcar.wire.wheels import Status, WheelsReason

PROFILE = paths.HARDWARE / "pan-tilt.toml"
ON_CHIP = (
    "servos = {}",
    "servos.pan = {channel = 0, most_deg = 70}",
    "servos.tilt = {channel = 15, most_deg = 45, center_on_stop = true}",
)
ON_HAT = (
    "motors = {}",
    'motors.drive = {driver = "motor-hat", port = 1}',
    'motors.steer = {driver = "motor-hat", port = 2}',
    *ON_CHIP,
)


@contextlib.contextmanager
def rig_of(tmp_path: Path, overrides: tuple[str, ...] = ()) -> Iterator[tuple[Rig, Client]]:
    options = tuple(options_of(profiles.load(PROFILE, overrides)))
    with Rig(tmp_path, PROFILE, ('pins.backend = "pigpio"', *overrides), options) as rig:
        client = Client(rig.runtime)
        client.send(0.0)
        yield rig, client
        client.close()


def angles(rig: Rig) -> list[float | None]:
    found = [aimed_deg(rig.soc, servo) for servo in rig.profile.servos.values()]
    return [None if deg is None else round(deg) for deg in found]


@pytest.mark.parametrize("overrides", [(), ON_CHIP, ON_HAT], ids=["GPIO", "PCA9685", "HAT"])
def test_servos_turn_within_speed_and_limits_and_centre_on_stop_as_set(
    tmp_path: Path, overrides: tuple[str, ...]
) -> None:
    with rig_of(tmp_path, overrides) as (rig, client):
        assert angles(rig) == [None, None], "no pulse before the first angles"
        client.aim(10.0, -5.0)
        until(lambda: angles(rig) == [10, -5], START_S, "they do not turn")
        began_s = time.monotonic()
        client.aim(999.0, 999.0)
        until(lambda: angles(rig) == [70, 45], START_S, "they do not turn to their limits")
        assert time.monotonic() - began_s > 0.9 * 60.0 / 120.0, "faster than its speed"
        client.close()
        until(lambda: angles(rig) == [70, 0], START_S, "a lost run did not turn tilt to its rest")
        rig.drive().kill()
        rig.stands(0.05)
        time.sleep(0.3)
        assert angles(rig) == [70, 0], "a stop turned pan"
        rig.wheels.terminate()
        until(lambda: angles(rig) == [None, None], START_S, "pulses after the end of wheels")


def moves(client: Client) -> bool:
    """Send a wish; return whether it was applied."""
    client.send(0.0)
    answer = client.send(0.3)
    return answer is not None and answer.status == Status.APPLIED


def test_hung_run_is_a_stop_for_servos(tmp_path: Path) -> None:
    with rig_of(tmp_path) as (rig, client):
        client.aim(70.0, 45.0)
        until(lambda: angles(rig) == [70, 45], START_S, "they do not turn")
        until(lambda: moves(client), START_S, "it does not drive")  # a busy machine may be late
        until(lambda: angles(rig) == [70, 0], START_S, "tilt does not turn to its rest")
        client.aim(70.0, 45.0)  # a run that does not know of the stop yet
        time.sleep(0.3)
        assert angles(rig) == [70, 0]
        client.aim(70.0, 44.0)
        until(lambda: angles(rig) == [70, 44], START_S, "it does not obey the next angles")


def test_new_run_that_begins_at_rest_causes_no_leap(tmp_path: Path) -> None:
    with rig_of(tmp_path) as (rig, client):
        client.aim(70.0, 0.0)
        until(lambda: angles(rig) == [70, 0], START_S, "it does not turn")
        client.aim(0.0, 0.0)
        time.sleep(0.1)
        assert angles(rig) != [0, 0]
        until(lambda: angles(rig) == [0, 0], START_S, "it does not turn back")


def test_killed_wheels_leave_them_where_they_are(tmp_path: Path) -> None:
    with rig_of(tmp_path) as (rig, client):
        client.aim(30.0, 10.0)
        until(lambda: angles(rig) == [30, 10], START_S, "they do not turn")
        rig.wheels.send_signal(signal.SIGKILL)
        rig.wheels.wait()
        time.sleep(0.3)
        assert angles(rig) == [30, 10]


def test_restarted_pigpiod_gets_the_angles_again(tmp_path: Path) -> None:
    with rig_of(tmp_path) as (rig, client):
        client.aim(30.0, 10.0)
        until(lambda: angles(rig) == [30, 10], START_S, "they do not turn")
        rig.kill_pigpiod()
        rig.soc.pin[12].pwm = rig.soc.pin[13].pwm = 0
        rig.restart_pigpiod()
        until(lambda: angles(rig) == [30, 10], START_S, "no pulses again")


class PlayedPins(FakePins):
    """Pins that note their pulses, and may hang."""

    def __init__(self) -> None:
        super().__init__(lambda _: None)
        self.pulses, self.hung, self.entered = list[float](), threading.Event(), threading.Event()
        self.hung.set()

    def servo(self, gpio: int, pulse_us: float) -> None:
        self.pulses.append(pulse_us)
        self.entered.set()
        self.hung.wait(START_S)


def test_angles_are_taken_while_the_servos_outputs_hang() -> None:
    """The outputs have a thread of their own: a bus that hangs delays no stop."""
    pins = PlayedPins()
    pins.hung.clear()
    servos = ServoThread(profiles.load(PROFILE), lambda _: contextlib.nullcontext((pins, None)))
    servos.aim((0.0, 0.0))
    assert pins.entered.wait(START_S)
    began_s = time.monotonic()
    for _ in range(1000):
        servos.aim((10.0, 10.0))
    assert time.monotonic() - began_s < MARGIN_S
    pins.hung.set()
    servos.close()


def test_fault_of_an_output_is_tried_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fpvcar.wheels.servos.RETRY_S", 0.01)
    pins, faults = PlayedPins(), iter((PinsLost("no chip"), PinsLost("no chip"), None))

    @contextlib.contextmanager
    def opens(profile: Profile) -> Iterator[tuple[FakePins, None]]:
        if (fault := next(faults)) is not None:
            raise fault
        yield pins, None

    servos = ServoThread(profiles.load(PROFILE), opens)
    servos.aim((10.0,))  # of another number: ignored
    servos.aim((10.0, 0.0))
    until(lambda: pins.pulses[:2] == [1600.0, 1500.0], START_S)
    servos.close()
    assert [entry.message for entry in caplog.records] == ["servos: no chip; trying again"]


class RefusingPins(PlayedPins):
    """Pins of a daemon that refuses the pulses of one servo."""

    refuses = True

    def servo(self, gpio: int, pulse_us: float) -> None:
        if self.refuses and gpio == 12:
            raise PinsRefused("servo on GPIO 12: no permission")
        super().servo(gpio, pulse_us)


def test_refused_pulse_is_reported_and_holds_up_no_other_servo(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fpvcar.wheels.servos.AGAIN_S", 0.01)
    pins = RefusingPins()
    servos = ServoThread(profiles.load(PROFILE), lambda _: contextlib.nullcontext((pins, None)))
    servos.aim((0.0, 30.0))
    until(lambda: 1800.0 in pins.pulses, START_S, "tilt does not turn")
    reason = "servo pan: servo on GPIO 12: no permission"
    assert str(servos.fault) == reason
    pins.refuses = False
    until(lambda: servos.fault is None, START_S, "the fault does not end")
    servos.close()
    assert [entry.message for entry in caplog.records] == [f"servos: {reason}; trying again"]


def test_fault_of_a_chip_reaches_run_and_the_car_drives(tmp_path: Path) -> None:
    with rig_of(tmp_path, ON_CHIP) as (rig, client):
        client.aim(10.0, 0.0)
        until(lambda: angles(rig) == [10, 0], START_S, "they do not turn")
        rig.soc.hat.broken = 1
        until(lambda: client.send(0.0) and client.servos, START_S, "no fault")
        assert "PCA9685" in str(client.servos)
        drives = lambda: (  # noqa: E731
            client.send(0.0) and (one := client.send(0.3)) and one.status == Status.APPLIED
        )
        until(drives, START_S, "the car does not drive")
        rig.soc.hat.broken = 0
        until(lambda: client.send(0.0) and not client.servos, START_S, "the fault does not end")


def test_damaged_angles_stop_the_car(tmp_path: Path) -> None:
    """The sender of a damaged packet is broken."""
    with rig_of(tmp_path) as (_, client):
        client.aim(math.nan, 0.0)
        answer = client.hear()
        assert answer is not None
        assert (answer.status, answer.reason) == (Status.STOPPED, WheelsReason.BAD_MESSAGE)
