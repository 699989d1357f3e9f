"""PCA9685, 16 PWM outputs on I2C (NXP data sheet rev. 4, section 7.3).

The chip has no time-out: it repeats the last setting for ever. A second process must be
able to call `all_off`: devices/guardian.py.

One prescaler serves all outputs: servos need 50 Hz, motors more than 1 kHz. Writes take
effect at the STOP of their transaction: all bytes of one `write` together.
"""

import time
from collections.abc import Sequence

from fpvcar.devices.i2c import I2cDevice, I2cError
from fpvcar.devices.pins import CYCLE_S, HOLD_S, PinsLost

RESTART = 0x80  # MODE1, written as 1: the outputs go on as before SLEEP
MODE1, MODE2, LED0, ALL_OFF_H, PRE_SCALE = 0x00, 0x01, 0x06, 0xFD, 0xFE
AUTO_INCREMENT, SLEEP = 0x20, 0x10  # MODE1; ALLCALL and SUB1-3 stay 0
TOTEM_POLE = 0x04  # MODE2; OUTNE 00: low while OE is high; OCH 0: change at STOP
SUBADR = {0x02: 0xE2, 0x03: 0xE4, 0x04: 0xE8}
FULL = 0x10  # bit 4 of ON_H: always on; of OFF_H: always off, which wins
STEPS = 4096
CLOCK_HZ = 25_000_000
WAKES_S = 0.0005
"""Start-up time of the oscillator (7.3.1)."""


def prescale(hz: float, clock: float = 1.0) -> int:
    """Return PRE_SCALE for a frequency of 24 to 1526 Hz (7.3.5); `clock` is the speed of the
    oscillator as a share of CLOCK_HZ."""
    return min(max(round(clock * CLOCK_HZ / (STEPS * hz)) - 1, 3), 255)


def frequency_hz(scale: int, clock: float = 1.0) -> float:
    """Return the frequency of a PRE_SCALE."""
    return clock * CLOCK_HZ / (STEPS * (scale + 1))


def is_pca9685(device: I2cDevice) -> bool:
    """Return whether SUBADR1 to SUBADR3 have their values after power-on (table 4).

    Drivers leave these registers alone. An INA219 at the same address has a voltage, a power and a
    current there. Writes nothing. Raises I2cError.
    """
    return all(device.read(register, 1)[0] == value for register, value in SUBADR.items())


def all_off(device: I2cDevice) -> None:
    """Switch all outputs off with one byte. Raises I2cError."""
    device.write(ALL_OFF_H, bytes((FULL,)))


def end_pulses(device: I2cDevice, output: int, neutral_us: float, clock: float = 1.0) -> None:
    """Hold an ESC at neutral if it has pulses, then switch all outputs off, and wait until its last
    pulse has ended. Neutral comes first because silence does not stop an ESC. Raises I2cError."""
    (mode,), led = device.read(MODE1, 1), LED0 + 4 * output
    runs = not mode & SLEEP and not device.read(led + 3, 1)[0] & FULL
    if runs:
        device.write(MODE1, bytes(((mode | AUTO_INCREMENT) & ~RESTART,)))
        period_us = 1e6 / frequency_hz(device.read(PRE_SCALE, 1)[0], clock)
        steps = round(neutral_us / period_us * STEPS)
        device.write(led, bytes((0, 0, steps & 0xFF, steps >> 8)))
        time.sleep(HOLD_S)
    all_off(device)
    if runs:
        time.sleep(CYCLE_S)


class Pca9685:
    """Outputs as `Pins`. A bus error is retried once, then PinsLost is raised."""

    def __init__(self, device: I2cDevice, hz: int, fresh: bool = True, clock: float = 1.0) -> None:
        """Switch all outputs off first, then set the frequency. Without `fresh` leave both to
        another owner of the chip. `clock`: as for `prescale`."""
        self._device, scale = device, prescale(hz, clock)
        self._period_us = 1e6 / frequency_hz(scale, clock)
        if fresh:
            self._begin(scale)

    def _begin(self, scale: int) -> None:
        self._write(ALL_OFF_H, FULL)
        time.sleep(self._period_us / 1e6)  # SLEEP would cut the pulse of a servo short
        # PRE_SCALE can only be written while asleep
        self._write(MODE1, AUTO_INCREMENT | SLEEP)
        self._write(PRE_SCALE, scale)
        self._write(MODE2, TOTEM_POLE)
        self._write(MODE1, AUTO_INCREMENT)
        time.sleep(WAKES_S)

    def write(self, gpio: int, level: int) -> None:
        """Make an output steady; stop its PWM."""
        self.write_together((gpio,), level)

    def write_together(self, gpios: Sequence[int], level: int) -> None:
        """Switch adjacent outputs in the same instant."""
        first, last = min(gpios), max(gpios)
        steady = (0, FULL, 0, 0) if level else (0, 0, 0, FULL)
        if last - first + 1 != len(gpios):
            raise ValueError(f"outputs {list(gpios)}: expected some side by side")
        self._write(LED0 + 4 * first, *steady * len(gpios))

    def set_frequency(self, gpio: int, hz: int) -> None:
        """Do nothing: the chip has one frequency for all outputs."""

    def pwm(self, gpio: int, duty: float) -> None:
        """Set a duty (0 to 1), rounded, but never down to 0."""
        self._pulse(gpio, round(duty * STEPS) or (1 if duty > 0.0 else 0))

    def servo(self, gpio: int, pulse_us: float) -> None:
        """Send a pulse of this length in each period; 0 ends them."""
        self._pulse(gpio, round(pulse_us / self._period_us * STEPS))

    def _pulse(self, gpio: int, steps: int) -> None:
        if 0 < steps < STEPS:
            self._write(LED0 + 4 * gpio, 0, 0, steps & 0xFF, steps >> 8)
        else:
            self.write(gpio, int(steps > 0))

    def _write(self, register: int, *data: int) -> None:
        try:
            self._device.write(register, bytes(data))
        except I2cError:
            try:
                self._device.write(register, bytes(data))
            except I2cError as fault:
                raise PinsLost(
                    f"PCA9685, tried twice: {fault}; its supply? sudo fpvcar doctor"
                ) from None
