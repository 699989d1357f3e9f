"""Runs in the VM: the kernel's PWM, with a PCA9685 of the kernel's own driver over i2c-stub.

    KernelPwm -> /sys/class/pwm -> PWM core -> pwm-pca9685 -> regmap -> i2c-stub (memory)
                                    the test reads the chip's registers there <--

Limits: a Pi's PWM hardware and its pin multiplexing are not tested.
"""

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from smbus2 import SMBus
from testkit.pins import pwm_contract

from fpvcar.devices.chips.pca9685 import FULL, LED0, MODE1, MODE2, PRE_SCALE
from fpvcar.devices.linux import pins_off
from tests.vm_sensors import gpio_sim, tell
from tests.vm_sensors.inside_i2c import stub_bus
from tests.vm_sensors.inside_wheels import Car, pull

ADDRESS = 0x41
RESET = {MODE1: 0x11, MODE2: 0x04, PRE_SCALE: 0x1E, LED0 + 3: FULL, LED0 + 7: FULL}
"""Registers of a real chip after power-on; those of the stub are zero."""
COUNTS = 4096
PROFILE = f"""
[car]
name = "Toad"
[pins]
backend = "linux"
pwm = [12, 13]
pwm_device = "{{device}}"
[motors.drive]
forward = 12
reverse = 13
pwm_hz = 1000
winding_ohm = 5
[motors.steer]
forward = {gpio_sim.LEFT}
reverse = {gpio_sim.RIGHT}
winding_ohm = 5
"""
PINS = Path("/run/car/motor-pins")


class Pca9685:
    """The chip behind the kernel's driver, read by its registers."""

    def __init__(self, bus: int) -> None:
        self._bus, self.device = SMBus(bus), f"{bus}-{ADDRESS:04x}"
        devices = Path("/sys/bus/i2c/devices")
        if not (devices / self.device).exists():
            for register, value in RESET.items():
                self._bus.write_byte_data(ADDRESS, register, value)
            (devices / f"i2c-{bus}/new_device").write_text(f"pca9685 {ADDRESS:#x}")

    def duty(self, channel: int) -> float:
        """Return the share of the time for which an output is high."""
        _, on_h, off_l, off_h = (
            self._bus.read_byte_data(ADDRESS, LED0 + 4 * channel + at, force=True)
            for at in range(4)
        )
        if off_h & FULL:
            return 0.0
        return 1.0 if on_h & FULL else ((off_h & 0x0F) << 8 | off_l) / COUNTS

    def value(self, channel: int, name: str) -> str:
        """Return the content of a file of a channel."""
        chip, _ = pins_off.find_pwm(12, self.device)
        return pins_off.read(f"{chip}/pwm{channel}/{name}")

    def driven(self) -> bool:
        """Return whether the drive motor turns, or may in the next moment."""
        return self.duty(0) > 0.0 or self.duty(1) > 0.0


def _check(part: str, number: signal.Signals) -> Callable[[Pca9685], None]:
    def check(chip: Pca9685) -> None:
        with gpio_sim.kernel_says("N"):
            pull(Car(PROFILE.format(device=chip.device), chip.driven), part, number)

    return check


def both_killed(chip: Pca9685) -> None:
    """The chip goes on after the death of both; the unit's last resort stops it."""
    with gpio_sim.kernel_says("N"):
        car = Car(PROFILE.format(device=chip.device), chip.driven)
        os.kill(car.guardian, signal.SIGSTOP)
        guardian = car.guardian
        os.kill(car.wheels, signal.SIGKILL)
        os.kill(guardian, signal.SIGKILL)
        assert chip.driven(), "who stopped it?"
        assert pins_off.main(str(PINS)) == 1, "the VM has no registers of pins"
        assert not chip.driven()
        car.end()


CHECKS: dict[str, Callable[[Pca9685], None]] = {
    **pwm_contract.CHECKS,
    "pwm_wheels_killed": _check("wheels", signal.SIGKILL),
    "pwm_wheels_hang": _check("wheels", signal.SIGSTOP),
    "pwm_both_killed": both_killed,
    "pwm_driver_killed": _check("driver", signal.SIGKILL),
    "pwm_driver_hangs": _check("driver", signal.SIGSTOP),
    "pwm_guardian_killed": _check("guardian", signal.SIGKILL),
    "pwm_guardian_hangs": _check("guardian", signal.SIGSTOP),
}

if __name__ == "__main__":
    gpio_sim.plug()
    chip = Pca9685(stub_bus())
    tell({name: partial(CHECKS[name], chip) for name in sys.argv[1:]})
