"""Runs in the VM: read the motor pins, of the bench's chip, of gpio-sim or of a PWM."""

import mmap
import os
import re
import select
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from testkit.harness import PinWatch

from fpvbench import soc
from fpvcar.devices.linux import pins_off
from fpvcar.hil.pin_recorder import Sample
from tests.vm_sensors.gpio_sim import CONFIG, Outside

SOC = Path("/dev/shm/soc")
TRACE = Path("/sys/kernel/tracing/instances/pwm")
WRITE = re.compile(
    r" (?P<time>\d+\.\d{6}): pwm_apply: pwmchip\d+\.(?P<channel>\d): period=\d+ "
    r"duty_cycle=(?P<duty>\d+) polarity=0 enabled=(?P<enabled>\d) err=0"
)
EVERY_S, PERIOD_NS = 0.005, 1_000_000
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


class PwmWatch(PinWatch):
    """Watch on a motor behind two outputs of a PWM, by the kernel's trace of each write.

    The trace has the kernel's time of each write. A pin that the last resort has made an input is
    not connected to its PWM any more: the registers in /dev/gpiomem show that.
    """

    def __init__(self, chip: Path, pins: Sequence[int]) -> None:
        super().__init__(soc.Soc(), pins[:2])
        with Path(pins_off.DEVICE).open("rb", buffering=0) as device:
            memory = mmap.mmap(device.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ)
        self._registers = memoryview(memory).cast("I")
        (TRACE / "trace").write_text("")  # without the writes of earlier watches' time
        self._on = [self._is_on(chip / f"pwm{channel}") for channel in (0, 1)]
        self._pipe = os.open(TRACE / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)

    def __exit__(self, *reason: object) -> None:
        super().__exit__(*reason)
        os.close(self._pipe)

    @staticmethod
    def _is_on(channel: Path) -> bool:
        if not channel.exists():
            return False
        enabled, duty = (int((channel / name).read_text()) for name in ("enable", "duty_cycle"))
        return bool(enabled and duty)

    def duties(self) -> tuple[float, ...]:
        inputs = [self._registers[gpio // 10] >> gpio % 10 * 3 & 7 == 0 for gpio in self._pins]
        return tuple(
            float(on and not is_input) for on, is_input in zip(self._on, inputs, strict=True)
        )

    def note(self) -> None:
        """Wait a moment for writes, and keep each."""
        if self.samples and select.select([self._pipe], [], [], EVERY_S)[0]:
            for write in WRITE.finditer(os.read(self._pipe, 1 << 16).decode()):
                self._on[int(write["channel"])] = write["enabled"] == "1" and write["duty"] != "0"
                self._keep(int(write["time"].replace(".", "")) * 1000)
        self._keep(time.monotonic_ns())

    def _keep(self, time_ns: int) -> None:
        """Append a sample, in place of one that was shorter than the PWM's period."""
        duties = self.duties()
        if self.samples and self.samples[-1].duties == duties:
            return
        if len(self.samples) > 1 and time_ns - self.samples[-1].time_ns < PERIOD_NS:
            self.samples.pop()
        self.samples.append(Sample(time_ns, duties))


@cache
def _chip() -> soc.Soc:
    from tests.vm_units import registers

    return registers.attach(SOC)


def watch(pins: Sequence[int]) -> PinWatch:
    """Return a watch on the pin chip of this VM."""
    for chip in Path("/sys/bus/i2c/devices").glob("*/pwm/pwmchip*"):
        return PwmWatch(chip, pins)
    if CONFIG.exists():
        return PulseWatch(Outside(), pins)
    return PinWatch(_chip(), pins)
