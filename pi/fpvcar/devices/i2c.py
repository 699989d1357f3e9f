"""A device on an I2C bus, whoever drives the bus: pigpio_i2c.py or smbus_i2c.py."""

from collections.abc import Callable
from typing import Protocol

ENABLE = (
    "enable I2C: sudo raspi-config nonint do_i2c 0 (or the line dtparam=i2c_arm=on in "
    "/boot/firmware/config.txt, and i2c-dev in /etc/modules), then reboot"
)
"""What to do where there is no bus."""


class I2cError(Exception):
    """The device does not answer, or is not what it should be."""


class I2cDevice(Protocol):
    """One address on one bus. `read` and `write` raise I2cError."""

    def read(self, register: int, size: int) -> bytes:
        """`size` bytes from a register on (1 to 32), as they come over the wire."""

    def write(self, register: int, data: bytes) -> None:
        """Writes bytes (1 to 32) from a register on."""


class OpenDevice(I2cDevice, Protocol):
    """One that holds something open."""

    def put_off(self, seconds: float) -> float:
        """Has the bus wait before the next read, which waits for it; returns what is
        left for the caller to wait: all, where the bus cannot."""

    def close(self) -> None:
        """Lets go of it. Raises PinsFault where a daemon is the matter."""


Open = Callable[[int, int], OpenDevice]
"""(bus, address) -> device. Raises I2cError, in words that say what to do."""
