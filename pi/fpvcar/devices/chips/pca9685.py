"""PCA9685, 16 outputs of PWM on I2C (NXP data sheet rev. 4, section 7.3).

It has no time-out: what it was told last it does for ever, whoever dies. Somebody else
must be able to say `all_off`: devices/guardian.py.

There is one prescaler, so all outputs have one frequency: servos want 50 Hz, motors
more than 1 kHz. What is written takes effect at the STOP of its transaction: all bytes
of one `write` together.
"""

import time
from collections.abc import Callable, Sequence

from fpvcar.devices.i2c import I2cDevice, I2cError
from fpvcar.devices.pins import PinsLost

MODE1, MODE2, LED0, ALL_OFF_H, PRE_SCALE = 0x00, 0x01, 0x06, 0xFD, 0xFE
AUTO_INCREMENT, SLEEP = 0x20, 0x10  # MODE1; ALLCALL and SUB1-3 stay 0
TOTEM_POLE = 0x04  # MODE2; OUTNE 00: low while OE is high; OCH 0: change at STOP
FULL = 0x10  # bit 4 of ON_H: always on; of OFF_H: always off, which wins
STEPS = 4096
CLOCK_HZ = 25_000_000
WAKES_S = 0.0005
"""The oscillator's start (7.3.1)."""


def prescale(hz: float) -> int:
    """What PRE_SCALE wants for a frequency of 24 to 1526 Hz (7.3.5)."""
    return min(max(round(CLOCK_HZ / (STEPS * hz)) - 1, 3), 255)


def frequency_hz(scale: int) -> float:
    """The frequency that a PRE_SCALE gives."""
    return CLOCK_HZ / (STEPS * (scale + 1))


def all_off(device: I2cDevice) -> None:
    """Switches all outputs off by one byte. Raises I2cError."""
    device.write(ALL_OFF_H, bytes((FULL,)))


class Pca9685:
    """The outputs as `Pins`. An error on the bus is tried once more, then PinsLost."""

    def __init__(self, device: I2cDevice, hz: int) -> None:
        """Switches all off before anything else, then sets the frequency."""
        self._device = device
        self._act(lambda: all_off(device))
        scale = prescale(hz)
        self._period_us = 1e6 / frequency_hz(scale)
        self._write(MODE1, AUTO_INCREMENT | SLEEP)  # else PRE_SCALE takes nothing
        self._write(PRE_SCALE, scale)
        self._write(MODE2, TOTEM_POLE)
        self._write(MODE1, AUTO_INCREMENT)
        time.sleep(WAKES_S)

    def write(self, gpio: int, level: int) -> None:
        """Makes an output steady; stops its PWM."""
        self.write_together((gpio,), level)

    def write_together(self, gpios: Sequence[int], level: int) -> None:
        """Switches outputs; those side by side in the same instant."""
        first, last = min(gpios), max(gpios)
        steady = (0, FULL, 0, 0) if level else (0, 0, 0, FULL)
        if last - first + 1 != len(gpios):
            raise ValueError(f"outputs {list(gpios)}: expected some side by side")
        self._write(LED0 + 4 * first, *steady * len(gpios))

    def set_frequency(self, gpio: int, hz: int) -> None:
        """Nothing: all outputs have that of the chip."""

    def pwm(self, gpio: int, duty: float) -> None:
        """High for `duty` (0 to 1) of the time; rounded, but never to nothing."""
        self._pulse(gpio, round(duty * STEPS) or (1 if duty > 0.0 else 0))

    def servo(self, gpio: int, pulse_us: float) -> None:
        """A pulse of that length each period."""
        self._pulse(gpio, round(pulse_us / self._period_us * STEPS))

    def _pulse(self, gpio: int, steps: int) -> None:
        if 0 < steps < STEPS:
            self._write(LED0 + 4 * gpio, 0, 0, steps & 0xFF, steps >> 8)
        else:
            self.write(gpio, int(steps > 0))

    def _write(self, register: int, *data: int) -> None:
        self._act(lambda: self._device.write(register, bytes(data)))

    def _act(self, act: Callable[[], None]) -> None:
        try:
            act()
        except I2cError:
            try:
                act()
            except I2cError as fault:
                raise PinsLost(
                    f"PCA9685, tried twice: {fault}; its supply? sudo fpvcar doctor"
                ) from None
