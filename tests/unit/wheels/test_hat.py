"""Real wheels process and its guardian on an emulated PCA9685: pull every plug."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.pins.wheels import MARGIN_S, START_S, Client, Rig, until

from fpvbench.units import let_go
from fpvcar.runtime import paths
from fpvcar.wire.wheels import WheelsReason

HAT = paths.HARDWARE / "motor-hat.toml"
OE = 4


def rig_of(folder: Path, *overrides: str) -> Rig:
    emulated = ('i2c.backend = "pigpio"', *overrides)
    return Rig(folder, HAT, emulated, ["--i2c=1:0x60:pca9685"])


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with rig_of(tmp_path) as rig:
        yield rig


def guardian(rig: Rig) -> int:
    """Return the pid of the wheels' only child; 0 if there is no child."""
    pid = rig.wheels.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else 0


def test_car_drives_and_stops_with_its_driver(rig: Rig) -> None:
    driver = rig.drive(-0.3)
    driver.kill()
    rig.stands(0.05)
    driver.wait()
    rig.drive(0.3)


def test_hung_driver_stops_the_car(rig: Rig) -> None:
    """`wheels` itself stops the car, without a kill."""
    driver = rig.drive()
    os.kill(driver.pid, signal.SIGSTOP)
    rig.stands(0.15)
    time.sleep(0.4)
    assert rig.wheels.poll() is None
    os.kill(driver.pid, signal.SIGCONT)
    rig.stays(0.3)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_killed_or_hung_wheels_stop_the_car(rig: Rig, number: signal.Signals) -> None:
    driver = rig.drive()
    os.kill(rig.wheels.pid, number)
    rig.stands(0.3)
    assert rig.wheels.wait(START_S) == -signal.SIGKILL
    driver.kill()
    driver.wait()
    rig.wheels = rig.start_wheels()
    rig.drive()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_killed_or_hung_guardian_stops_the_car_and_is_replaced(
    rig: Rig, number: signal.Signals
) -> None:
    """No guardian could stop the car after us: `wheels` does, and takes a new guardian."""
    driver = rig.drive()
    before = guardian(rig)
    os.kill(before, number)
    rig.stands(0.3)
    until(lambda: guardian(rig) not in (0, before), START_S, "no new guardian")
    assert rig.wheels.poll() is None
    driver.kill()
    driver.wait()
    rig.drive()


def test_late_guardian_does_not_stop_new_wheels(tmp_path: Path) -> None:
    """A late guardian would set OE, and the car would stand for ever while `wheels` drives."""
    with rig_of(tmp_path, f"pca9685.oe = {OE}") as rig:
        driver = rig.drive()
        late = guardian(rig)
        os.kill(late, signal.SIGSTOP)
        rig.wheels.kill()
        rig.wheels.wait(START_S)
        driver.kill()
        rig.wheels = rig.start_wheels()
        driver = rig.drive()
        with contextlib.suppress(ProcessLookupError):
            os.kill(late, signal.SIGCONT)
        time.sleep(0.2)
        if not rig.powered:  # a driver that waited for a core was stopped; OE would stop all
            driver.kill()
            rig.drive()


def test_single_bus_error_does_not_stop_the_car(rig: Rig) -> None:
    """The wire fails for less than two transactions take."""
    driver = rig.drive()
    for _ in range(20):
        rig.soc.hat.broken = 1
        rig.soc.hat.broken = 0
        time.sleep(0.013)
    assert driver.poll() is None


def test_car_stops_when_the_failed_bus_is_back(rig: Rig) -> None:
    """The chip is unreachable in that time without OE; `wheels` reports the cause."""
    client = Client(rig.runtime)
    until(lambda: drives(rig, client), START_S, "it does not drive")
    rig.soc.hat.broken = 1
    answers = [client.send(0.3) for _ in range(3)]
    assert WheelsReason.PINS_LOST in [one.reason for one in answers if one]
    assert "PCA9685, tried twice" in str(client.why)
    assert rig.powered, "the chip does for ever what it was told last"
    rig.soc.hat.broken = 0
    rig.stands(0.3)
    client.close()


def drives(rig: Rig, client: Client) -> bool:
    client.send(0.0)
    time.sleep(0.02)
    client.send(0.0)
    time.sleep(0.02)
    client.send(0.3)
    return rig.powered


@pytest.mark.parametrize("unit", ["bus", "wheels", "both"])
def test_failed_bus_with_oe_stops_the_car_at_once(tmp_path: Path, unit: str) -> None:
    with rig_of(tmp_path, f"pca9685.oe = {OE}") as rig:
        rig.drive()
        assert rig.soc.pin[OE].level() == 0
        if unit != "wheels":
            rig.soc.hat.broken = 1
        if unit != "bus":
            os.kill(rig.wheels.pid, signal.SIGSTOP)
        rig.stands(0.3)
        until(lambda: rig.soc.pin[OE].level() == 1, MARGIN_S, "OE stays")
        if unit == "both":
            assert rig.soc.hat.duty(8) > 0.0, "the chip itself goes on"
        rig.soc.hat.broken = 0


def test_terminated_wheels_turn_off_motors_and_guardian(rig: Rig) -> None:
    rig.drive(-0.3)
    watcher = guardian(rig)
    rig.wheels.terminate()
    rig.stands(0.05)
    assert rig.wheels.wait(START_S) == 0
    assert not any(rig.soc.hat.duty(one) for one in range(16))
    assert not Path(f"/proc/{watcher}").exists()


def test_helper_stops_the_car_when_wheels_and_guardian_hang(rig: Rig) -> None:
    watcher = hung_while_driving(rig)
    try:
        time.sleep(0.5)
        assert rig.powered
        let_go(rig.soc, rig.profile.stop_pins())
        rig.stands(MARGIN_S)
    finally:
        os.kill(watcher, signal.SIGCONT)
    assert (rig.runtime / "motor-pins").read_text() == "i2c-1:0x60\n"


def hung_while_driving(rig: Rig) -> int:
    """Hang `wheels` and its guardian while the car drives; return the guardian's pid.

    Retries if the car had been stopped just before, because a process waited for a core.
    """
    for _ in range(3):
        driver, watcher = rig.drive(), guardian(rig)
        both = (rig.wheels.pid, watcher)
        for pid in both:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(0.02)
        if rig.powered:
            return watcher
        driver.kill()
        for pid in both:
            os.kill(pid, signal.SIGCONT)
    raise AssertionError("it does not drive")


def test_missing_chip_is_named_on_stderr(tmp_path: Path) -> None:
    words = "PCA9685, tried twice: I2C bus 1 address 0x6f"
    with rig_of(tmp_path, "pca9685.address = 0x6f") as rig:
        late = threading.Timer(START_S, rig.wheels.kill)
        late.start()
        assert any(words in line for line in rig.wheels.stderr or ())
        late.cancel()
