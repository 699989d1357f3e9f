"""Table rows for a car whose motors hang on the kernel's gpiochip, or on the kernel's PWM.

A line is released when its owner dies, and a guardian kills an owner that hangs. A PWM is released
by nothing: the guardian switches it off, the next `wheels` or the helper.
"""

import os
import signal
import time
from pathlib import Path

from fpvcar.hil.stop_causes import PINS_S, TWO_FAULTS_S
from testkit.harness import RunningBench
from testkit.stops import causes, hat_causes
from testkit.stops.causes import signalled
from testkit.stops.ground import Scene
from testkit.stops.stopping import Cause

OPTIONS = ("--pins=kernel",)
PWM_PINS = (12, 13)
PWM_OPTIONS = (
    *OPTIONS,
    '--set=pins.backend = "linux"',
    "--set=buttons.green.button = 17",
    "--set=lights.rear = [27]",
    f"--set=pins.pwm = {list(PWM_PINS)}",
    f"--set=motors.drive.forward = {PWM_PINS[0]}",
    f"--set=motors.drive.reverse = {PWM_PINS[1]}",
    "--set=motors.drive.pwm_hz = 1000",
)
"""The drive motor on pins with a PWM, in exchange for its own."""


class PwmBench(RunningBench):
    """A bench whose drive motor has the kernel's PWM."""

    def __init__(self, home: Path, *options: str, env: dict[str, str]) -> None:
        super().__init__(home, *options, env=env)
        self.pins = (*PWM_PINS, *self.pins[2:])


def _both_killed(scene: Scene) -> int:
    """Kill `wheels` and its guardian, which is stopped first so that it does nothing."""
    guardian = hat_causes.guardian(scene)
    os.kill(guardian, signal.SIGSTOP)
    now_ns = time.monotonic_ns()
    scene.bench.kill("wheels", signal.SIGKILL)
    os.kill(guardian, signal.SIGKILL)
    return now_ns


def _broken(scene: Scene) -> list[Path]:
    """Return files whose existence makes the PWM's channels refuse each write."""
    chip = next((scene.bench.runtime / "pwm/class").glob("pwmchip*"))
    files = ("broken-duty_cycle", "broken-enable")
    return [folder / name for folder in chip.glob("pwm[01]") for name in files]


def _break(scene: Scene) -> int:
    now_ns = time.monotonic_ns()
    for file in _broken(scene):
        file.touch()
    return now_ns


def _mend(scene: Scene) -> None:
    for file in _broken(scene):
        file.unlink()


GUARDIAN: tuple[Cause[Scene], ...] = (
    causes.row("wheels ended"),
    *(cause for cause in hat_causes.CAUSES if "I2C" not in cause.name),
)
"""Rows of a car with a guardian."""
CAUSES: tuple[Cause[Scene], ...] = tuple(
    {
        cause.name: cause for cause in (*causes.CAUSES, *GUARDIAN) if "pigpiod" not in cause.name
    }.values()
)
"""All rows that this car has; some give another reason than with pigpiod."""
BENCH_CAUSES: tuple[Cause[Scene], ...] = (
    causes.row("pigpiod killed", name="bench's kernel killed"),
    causes.row(
        "pigpiod hangs",
        name="bench's kernel hangs",
        mend=signalled("pigpiod", signal.SIGCONT),
        logged="fpvcar.wheels: lost the pins",
    ),
)
"""No rows of a real kernel, which cannot fail alone: a broken bench may not drive on either."""
BOTH_KILLED: Cause[Scene] = Cause(
    "wheels and guardian killed", TWO_FAULTS_S, "wheels_lost", _both_killed
)
PWM_FAILS: Cause[Scene] = Cause(
    "PWM fails", PINS_S, "pins", _break, _mend, logged="asked the helper"
)
PWM_CAUSES: tuple[Cause[Scene], ...] = (*GUARDIAN, BOTH_KILLED, PWM_FAILS)
SAMPLE = ("wheels killed", "wheels stopped", BOTH_KILLED.name, PWM_FAILS.name)
"""Rows of the PWM that every run of the tests measures."""
