"""Table rows for a car whose motors hang on a PCA9685.

The chip repeats its last command for ever, and a guardian stops it when `wheels` cannot.
"""

import os
import signal
import time
from pathlib import Path

from fpvbench.world.bridge import Bridge, Wiring
from fpvcar.config import MotorHat, Motors
from fpvcar.hil.stop_causes import NOTICED_S
from testkit.harness import PinWatch, RunningBench, wait_for
from testkit.stops.causes import row
from testkit.stops.ground import Scene
from testkit.stops.stopping import Cause

OE = 10
MOTORS = Motors(drive=MotorHat(port=1), steer=MotorHat(port=2))
OPTIONS = (
    "--set=motors.drive = {}",
    '--set=motors.drive.driver = "motor-hat"',
    "--set=motors.drive.port = 1",
    "--set=motors.drive.brake_s = 0.2",
    "--set=motors.steer = {}",
    '--set=motors.steer.driver = "motor-hat"',
    "--set=motors.steer.port = 2",
    f"--set=pca9685.oe = {OE}",
)
"""The bench's car on a HAT; its OE is wired."""


def _inputs(bridge: Bridge) -> tuple[float, float]:
    """Return the equivalent inputs of an MX1508."""
    if bridge.drive:
        return max(bridge.drive, 0.0), max(-bridge.drive, 0.0)
    return (1.0, 1.0) if bridge.brake else (0.0, 0.0)


class HatWatch(PinWatch):
    """Watch on the chip's outputs."""

    _wiring = Wiring(MOTORS, OE)

    def duties(self) -> tuple[float, ...]:
        """Return the duties as an MX1508's inputs, so that the same checks fit all rows."""
        drive, steer, *_ = self._wiring.bridges(self._soc)
        return (*_inputs(drive), *_inputs(steer))


class HatBench(RunningBench):
    """A bench whose motors are watched at the HAT."""

    def watch(self) -> PinWatch:
        """Return a watch on the HAT's outputs."""
        return HatWatch(self.soc, ())


def guardian(scene: Scene) -> int:
    """Return the process id of the guardian: the only child of `wheels`."""

    def children() -> list[str]:
        pid = scene.bench.pid("wheels")
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()

    wait_for(lambda: bool(children()), "a guardian")
    return int(children()[0])


def _guardian(number: signal.Signals) -> Cause[Scene]:
    def act(scene: Scene) -> int:
        pid, now_ns = guardian(scene), time.monotonic_ns()
        os.kill(pid, number)
        return now_ns

    name = "guardian killed" if number == signal.SIGKILL else "guardian hangs"
    return Cause(name, NOTICED_S, "pins", act, logged="the guardian of the motors")


def _break(scene: Scene) -> int:
    now_ns = time.monotonic_ns()
    scene.bench.soc.hat.broken = 1
    return now_ns


def _mend(scene: Scene) -> None:
    scene.bench.soc.hat.broken = 0


CAUSES: tuple[Cause[Scene], ...] = (
    row("run killed"),
    row("run stopped"),
    row("wheels killed", logged="the motors are off"),
    row("wheels stopped", mend=lambda scene: None, logged="and is killed; the motors are off"),
    row("wheels' loop blocked", logged="and is killed; the motors are off"),
    _guardian(signal.SIGKILL),
    _guardian(signal.SIGSTOP),
    Cause("I2C error, OE wired", NOTICED_S, "pins", _break, _mend, logged="PCA9685, tried twice"),
)
