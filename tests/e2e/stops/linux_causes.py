"""Table rows for a car whose motors hang on the kernel's gpiochip, or on the kernel's PWM.

A line is released when its owner dies, and a guardian kills an owner that hangs. A PWM is released
by nothing: the guardian switches it off, the next `wheels` or the helper.
"""

import os
import signal
import time
from pathlib import Path

from fpvbench.supervisor import PLAYED_PINS
from tests.e2e.harness import RunningBench
from tests.e2e.stops import hat_causes
from tests.e2e.stops.causes import signalled
from tests.e2e.stops.gpio_kernel import GpioKernel
from tests.e2e.stops.ground import BLOCKABLE, Scene
from tests.e2e.stops.stopping import Cause

OPTIONS = (
    '--set=pins.backend = "linux"',
    '--set=i2c.backend = "pigpio"',
    "--set=buttons = {}",
    "--set=lights = {}",
    "--set=sensors = {}",
    "--set=motors.drive.winding_ohm = 5",
    "--set=motors.steer.winding_ohm = 5",
)
"""The bench's car without the parts that `run` has on pins, and with motors for 100 Hz."""
PWM_PINS = (12, 13)
PWM_OPTIONS = (
    *OPTIONS,
    f"--set=pins.pwm = {list(PWM_PINS)}",
    f"--set=motors.drive.forward = {PWM_PINS[0]}",
    f"--set=motors.drive.reverse = {PWM_PINS[1]}",
    "--set=motors.drive.pwm_hz = 1000",
)


class LinuxBench(RunningBench):
    """A bench whose `wheels` has a gpiochip."""

    def __init__(self, home: Path, *options: str, env: dict[str, str]) -> None:
        self.kernel = GpioKernel(home / "run")
        env |= {"PYTHONPATH": str(BLOCKABLE.parent / "gpiochip"), PLAYED_PINS: "1"}
        super().__init__(home, *options, env=env)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop the bench, then the kernel."""
        try:
            return super().stop(number)
        finally:
            self.kernel.close()


class PwmBench(LinuxBench):
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


CAUSES: tuple[Cause[Scene], ...] = (
    Cause(
        "wheels ended",
        0.30,
        "wheels_stopped",
        signalled("wheels", signal.SIGTERM),
        logged="fpvcar.wheels: stopped: exit",
    ),
    *(cause for cause in hat_causes.CAUSES if "I2C" not in cause.name),
)
BOTH_KILLED: Cause[Scene] = Cause("wheels and guardian killed", 1.0, "wheels_lost", _both_killed)
PWM_FAILS: Cause[Scene] = Cause("PWM fails", 0.5, "pins", _break, _mend, logged="asked the helper")
PWM_CAUSES: tuple[Cause[Scene], ...] = (*CAUSES, BOTH_KILLED, PWM_FAILS)
SAMPLE = ("wheels killed", "wheels stopped", BOTH_KILLED.name, PWM_FAILS.name)
"""Rows of the PWM that every run of the tests measures."""
