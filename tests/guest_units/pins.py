"""Runs in the guest: read the motor pins, of the bench's chip, of gpio-sim or of a PWM."""

import os
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from smbus2 import SMBus

from fpvbench import soc
from fpvcar.devices.chips.pca9685 import FULL, LED0
from fpvcar.hil.pin_recorder import Sample
from tests.e2e.harness import PinWatch
from tests.guest_sensors.gpio_sim import CONFIG, Outside

SOC = Path("/dev/shm/soc")
PWM = 0x41
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


class PwmWatch(PulseWatch):
    """Levels as above, behind two outputs of a PWM: on or off, as one register of each shows."""

    def __init__(self, outside: Outside, pins: Sequence[int], bus: int) -> None:
        super().__init__(outside, pins[2:])
        self._bus = SMBus(bus)

    def duties(self) -> tuple[float, ...]:
        off_h = (self._bus.read_byte_data(PWM, LED0 + at, force=True) for at in (3, 7))
        return (*(float(not byte & FULL) for byte in off_h), *super().duties())


@cache
def _chip() -> soc.Soc:
    from tests.guest_units import registers

    return registers.attach(SOC)


def watch(pins: Sequence[int]) -> PinWatch:
    """Return a watch on the pin chip of this guest."""
    for device in Path("/sys/bus/i2c/devices").glob(f"*-{PWM:04x}"):
        return PwmWatch(Outside(), pins, int(device.name.partition("-")[0]))
    if CONFIG.exists():
        return PulseWatch(Outside(), pins)
    return PinWatch(_chip(), pins)
