"""Table rows for a car whose motors hang on the kernel's gpiochip.

A line is released when its owner dies, and a guardian kills an owner that hangs.
"""

import signal
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
)
"""The bench's car without the parts that `run` has on pins."""


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
