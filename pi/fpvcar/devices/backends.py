"""Who opens a device on an I2C bus: pigpiod, or the kernel."""

from functools import partial

from fpvcar.devices.i2c import Open
from fpvcar.devices.pigpio.i2c import PigpioI2c
from fpvcar.devices.pigpio.pins import PigpioPins


def kernel() -> Open:
    """/dev/i2c-N; needs no daemon."""
    from fpvcar.devices.linux.i2c import SmbusI2c  # not on every car

    return SmbusI2c


def opener(backend: str, pins: PigpioPins) -> Open:
    """By the profile's `i2c.backend`, for whoever has a connection to pigpiod."""
    return kernel() if backend == "linux" else partial(PigpioI2c, pins)
