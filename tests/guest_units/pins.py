"""Runs in the guest: read the motor pins, of the bench's chip or of gpio-sim."""

import os
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from fpvbench import soc
from fpvcar.hil.pin_recorder import Sample
from tests.e2e.harness import PinWatch
from tests.guest_sensors.gpio_sim import CONFIG, Outside

SOC = Path("/dev/shm/soc")
PULSE_NS = 20_000_000
"""Two of the pulses that the car's own thread makes."""


class PulseWatch(PinWatch):
    """Levels of pins that carry pulses. A pin that was high within `PULSE_NS` counts as driving."""

    def __init__(self, outside: Outside, pins: Sequence[int]) -> None:
        super().__init__(soc.Soc(), pins)
        self._files = [os.open(outside.place(gpio), os.O_RDONLY) for gpio in pins]

    def duties(self) -> tuple[float, ...]:
        return tuple(float(os.pread(file, 1, 0)) for file in self._files)

    @property
    def now(self) -> Sample:
        before, last = self.samples[-2:] if len(self.samples) > 1 else self.samples * 2
        is_low_for_ns = time.monotonic_ns() - last.time_ns
        return before if is_low_for_ns < PULSE_NS and before.driving else last


@cache
def _chip() -> soc.Soc:
    from tests.guest_units import registers

    return registers.attach(SOC)


def watch(pins: Sequence[int]) -> PinWatch:
    """Return a watch on the pin chip of this guest."""
    if CONFIG.exists():
        return PulseWatch(Outside(), pins)
    return PinWatch(_chip(), pins)
