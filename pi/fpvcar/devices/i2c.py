"""Device on an I2C bus, independent of the bus driver: pigpio/i2c.py or linux/i2c.py."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fpvcar.runtime.texts import Phrase, Text

SHORT = Phrase("i2c_short", "{count} bytes, expected {expected}")
FAULT = Phrase("i2c_fault", "I2C bus {bus} address {address}: {reason}")

ENABLE = Text(
    "i2c_advice",
    "enable I2C: sudo raspi-config nonint do_i2c 0 (or the line "
    "dtparam=i2c_arm=on in /boot/firmware/config.txt, and i2c-dev in "
    "/etc/modules), then reboot",
)
"""Advice for a missing bus."""


class I2cError(Exception):
    """Raised when a device does not answer or is not the expected chip."""


class Read(NamedTuple):
    """Read step of a transfer: 1 or 2 bytes starting at a register; the last step up to 32."""

    register: int
    size: int


class Write(NamedTuple):
    """Write step of a transfer: bytes (1 to 32) starting at a register."""

    register: int
    data: bytes


class Receive(NamedTuple):
    """Read of 1 to 32 bytes without a register, as the last step of a transfer. The last write has
    set the device's index. Some chips have an index of two bytes, or none."""

    size: int


Step = Read | Write | Receive
Transfer = Callable[[float], Sequence[bytes]]
"""(delay in seconds) -> the bytes read by the prepared steps. Raises I2cError; steps
after the failed one may have been carried out."""


class I2cDevice(ABC):
    """Address on a bus. Its methods and the functions they return raise I2cError.

    The default methods are for buses driven by this program; a daemon has its own.
    """

    patience_s: float = 0.0
    """Delay that the bus itself can apply before a transfer; otherwise the caller waits."""

    @abstractmethod
    def read(self, register: int, size: int) -> bytes:
        """Read `size` bytes (1 to 32) starting at a register, in wire order."""

    @abstractmethod
    def write(self, register: int, data: bytes) -> None:
        """Write bytes (1 to 32) starting at a register."""

    def receive(self, size: int) -> bytes:
        """Read `size` bytes (1 to 32) from where the last write left the device's index."""
        raise NotImplementedError

    def transfer(self, *steps: Step) -> Sequence[bytes]:
        """Run steps in order; return the bytes read."""
        return self.prepared(*steps)(0.0)

    def prepared(self, *steps: Step) -> Transfer:
        """Prepare steps to run repeatedly; a daemon receives them as one message."""

        def transfer(after_s: float) -> list[bytes]:
            results = []
            for step in steps:
                if isinstance(step, Read):
                    results.append(self.read(*step))
                elif isinstance(step, Receive):
                    results.append(self.receive(step.size))
                else:
                    self.write(*step)
            return results

        return transfer

    def post(self, register: int, data: bytes) -> None:
        """Write bytes, but perhaps return before it is done; the next call raises a fault."""
        self.write(register, data)

    def close(self) -> None:  # noqa: B027  # nothing to close without a handle
        """Close the handle. Raises PinsFault if the daemon is at fault."""


Open = Callable[[int, int], I2cDevice]
"""(bus, address) -> device. Raises I2cError with advice."""
