"""Real wheels process on the emulated chip: pull every plug, watch the pins.

The times are the design's plus a margin for a busy machine; `make benchmark` measures.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.network.ports import free_port
from testkit.pins.wheels import MARGIN_S, START_S, Client, Rig, until

from fpvbench.units import let_go
from fpvbench.world.bridge import Wiring
from fpvcar.config import profiles
from fpvcar.devices.linux import pins_off
from fpvcar.runtime import paths
from fpvcar.wheels.__main__ import warn_of_pulses
from fpvcar.wheels.pins_off_client import MOTOR_PINS
from fpvcar.wire.wheels import Answer, Status, WheelsReason


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Rig(tmp_path) as rig:
        yield rig


def test_killed_client_stops_the_car(rig: Rig) -> None:
    driver = rig.drive()
    driver.kill()
    rig.stands(0.05)


def test_published_pins_are_those_of_the_motors(rig: Rig) -> None:
    client = Client(rig.runtime)
    until(lambda: _applied(client.send(0.0)), START_S, "never ready")
    said = pins_off.parse((rig.runtime / MOTOR_PINS).read_text())
    assert said == ([17, 27, 24, 23], [], [])
    client.close()


def test_suspended_client_stops_the_car_also_after_resuming(rig: Rig) -> None:
    driver = rig.drive()
    os.kill(driver.pid, signal.SIGSTOP)
    rig.stands(0.15)
    os.kill(driver.pid, signal.SIGCONT)  # its 0.3 is refused
    rig.stays(0.5)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_killed_or_hung_wheels_stop_the_car(rig: Rig, number: signal.Signals) -> None:
    driver = rig.drive()
    os.kill(rig.wheels.pid, number)
    rig.stands(0.3)
    if number == signal.SIGSTOP:
        time.sleep(0.3)
        os.kill(rig.wheels.pid, signal.SIGCONT)
        rig.stays(0.5)
    driver.kill()


def test_wheels_start_again_after_a_kill(rig: Rig) -> None:
    rig.drive().kill()
    rig.wheels.kill()
    rig.wheels.wait()
    rig.wheels = rig.start_wheels()
    rig.drive()


def test_wheels_start_again_after_their_unit_freed_the_pins(rig: Rig) -> None:
    """ExecStopPost runs while the pin daemon stays alive and unaware of it."""
    driver = rig.drive()
    rig.wheels.kill()
    rig.wheels.wait()
    let_go(rig.soc, rig.profile.motor_pins())
    assert not rig.powered
    driver.kill()
    driver.wait()
    rig.wheels = rig.start_wheels()
    rig.drive()


def test_terminated_wheels_turn_off_all_pins(rig: Rig) -> None:
    rig.drive(-0.3)
    rig.wheels.terminate()
    rig.stands(0.05)
    assert rig.wheels.wait(20.0) == 0
    pins = rig.profile.motor_pins()
    assert [rig.soc.pin[gpio].level() for gpio in pins] == [0, 0, 0, 0]


def test_wheels_reconnect_to_a_restarted_pigpiod(rig: Rig) -> None:
    client = Client(rig.runtime)
    until(lambda: _applied(client.send(0.0)), START_S, "never ready")
    rig.kill_pigpiod()
    answer = client.send(0.0)
    assert answer and answer.reason == WheelsReason.PINS_LOST
    assert not rig.asked(), "its own unit lets go of the pins"
    rig.restart_pigpiod()
    until(lambda: _applied(client.send(0.0)), START_S, "not connected again")
    client.close()
    rig.drive()


def test_pigpiod_killed_while_driving_keeps_the_duty(rig: Rig) -> None:
    """DMA runs on without the unit's stand-in: the reason for ExecStopPost."""
    rig.drive_until(rig.kill_pigpiod, rig.restart_pigpiod)
    time.sleep(0.5)
    assert rig.powered
    rig.restart_pigpiod()
    rig.stands(2.0)


def test_hung_pigpiod_makes_the_wheels_ask_the_helper(rig: Rig) -> None:
    driver = rig.drive_until(rig.stop_pigpiod, rig.continue_pigpiod)
    until(rig.asked, 0.12 + MARGIN_S, "the helper was not asked")
    assert rig.powered, "DMA keeps the PWM running"
    driver.kill()
    driver.wait()
    client = Client(rig.runtime)
    answer = client.hear()
    assert answer and answer.status == Status.STOPPED
    answer = client.send(0.0)
    assert answer and answer.reason == WheelsReason.PINS_LOST
    client.close()
    rig.continue_pigpiod()
    rig.stands(1.0)
    rig.drive()


def _applied(answer: Answer | None) -> bool:
    time.sleep(0.01)
    return answer is not None and answer.status == Status.APPLIED


# --- another motor driver, with an enable of its own --------------------------


@pytest.fixture
def l298n(tmp_path: Path) -> Iterator[Rig]:
    with Rig(tmp_path, paths.HARDWARE / "l298n.toml") as rig:
        yield rig


def duties(rig: Rig) -> list[float]:
    return [rig.soc.pin[gpio].duty() for gpio in rig.profile.motor_pins()]


def test_l298n_drives_and_stops_with_its_driver(l298n: Rig) -> None:
    driver = l298n.drive(-0.3)
    enable, forward, reverse, *_ = duties(l298n)
    assert enable == pytest.approx(0.3, abs=0.01) and (forward, reverse) == (0, 1)
    driver.kill()
    l298n.stands(0.05)
    until(lambda: not any(duties(l298n)), START_S, "it brakes for ever")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_l298n_is_turned_off_by_the_dead_man(l298n: Rig, number: signal.Signals) -> None:
    l298n.drive()
    os.kill(l298n.wheels.pid, number)
    l298n.stands(0.3)
    until(lambda: not any(duties(l298n)), 0.1 + MARGIN_S, "an enable is on")


def test_l298n_is_turned_off_by_the_unit_of_pigpiod(l298n: Rig) -> None:
    l298n.drive_until(l298n.kill_pigpiod, l298n.restart_pigpiod)
    let_go(l298n.soc, l298n.profile.motor_pins())
    assert not any(duties(l298n))


def test_second_client_is_disconnected(rig: Rig) -> None:
    first = Client(rig.runtime)
    answer = first.hear()
    assert answer and answer.reason == WheelsReason.START
    second = Client(rig.runtime)
    assert second.hear() is None
    second.close()
    until(lambda: _applied(first.send(0.0)), START_S, "the first was harmed")
    first.close()


def test_client_that_never_reads_does_not_delay_the_stop(rig: Rig) -> None:
    client = Client(rig.runtime)

    def drives() -> bool:
        ready = all([_applied(client.send(0.0)) for _ in range(3)])
        return ready and _applied(client.send(0.3))

    until(drives, START_S, "it does not drive")
    client.flood(0.3, 2000)
    rig.stands(0.15)
    client.flood(0.3, 2000)
    rig.stays(0.3)
    client.close()


def test_second_wheels_is_refused(rig: Rig) -> None:
    Client(rig.runtime).close()
    other = rig.start_wheels()
    _, line = other.communicate(timeout=START_S)
    assert other.returncode == 1 and "another `fpvcar wheels`" in line


def test_missing_pigpiod_is_logged_with_a_retry(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "fpvcar.wheels",
            f"--profile={paths.HARDWARE / 'bench.toml'}",
            f"--runtime={tmp_path}",
            f"--set=pins.port = {free_port()}",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        # A process that may lock no memory reports it first.
        line = next(one for one in process.stderr if "memory is not" not in one)
        assert "Connection refused" in line and "trying again" in line
    finally:
        process.kill()
        process.communicate()


def test_wheels_without_a_needed_resistor_run_and_refuse_to_move(tmp_path: Path) -> None:
    with Rig(tmp_path, overrides=["motors.drive.pwm_hz = 800"]) as rig:
        client = Client(rig.runtime)

        def reason() -> str:
            refused = client.send(0.0)
            assert refused is not None and refused.reason == WheelsReason.PINS_LOST
            return str(client.why or "")

        until(lambda: bool(reason()), START_S, "no reason")
        assert "a resistor of 2.2 Ω" in str(client.why)
        rig.stays(0.1)
        client.close()


@pytest.mark.parametrize(("backend", "lines"), [("linux", 2), ("pigpio", 0)])
def test_wheels_logs_pulses_that_are_cut(
    backend: str, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    profile = profiles.load(paths.HARDWARE / "mx1508.toml", [f'pins.backend = "{backend}"'])
    warn_of_pulses(profile)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == lines
    assert all("motors." in one and "100 Hz" in one for one in said)


def test_wheels_use_little_memory_and_few_modules(rig: Rig) -> None:
    rig.drive()
    status = Path(f"/proc/{rig.wheels.pid}/status").read_text()
    resident_kb = int(status.split("VmRSS:")[1].split()[0])
    assert resident_kb <= 25 * 1024
    modules = subprocess.run(
        [sys.executable, "-c", _MODULES], capture_output=True, text=True, check=True
    )
    assert modules.stdout.strip() == "[]"


_MODULES = """
import sys
import fpvcar.wheels.__main__, fpvcar.devices.pigpio.dead_man
heavy = {"asyncio", "aiohttp", "numpy", "mujoco", "av", "ssl"}
print(sorted(heavy & sys.modules.keys()))
"""


# --- a servo that steers -------------------------------------------------------


def test_servo_starts_centred_and_is_released_on_a_kill(tmp_path: Path) -> None:
    with Rig(tmp_path, paths.HARDWARE / "mx1508-servo.toml") as rig:

        def angle() -> float | None:
            servo = Wiring(rig.profile.motors).bridges(rig.soc).servo
            assert servo is not None
            return servo.angle_rad

        client = Client(rig.runtime)
        assert angle() is None, "no pulse before the first zero"
        until(lambda: _applied(client.send(0.0)), START_S, "never ready")
        assert angle() == 0.0
        rig.wheels.kill()
        until(lambda: angle() is None, 0.3 + MARGIN_S, "the dead man holds it")
        client.close()


def test_differential_car_drives_both_motors(tmp_path: Path) -> None:
    with Rig(tmp_path, paths.HARDWARE / "differential.toml") as rig:
        driver = rig.drive()
        left, _, *more = Wiring(rig.profile.motors).bridges(rig.soc)
        assert left.drive > 0.0 and more == [None, True]
        driver.kill()
        rig.stands(0.05)
