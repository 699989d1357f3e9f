"""A device on an I2C bus, whoever drives the bus: pigpio/i2c.py or linux/i2c.py."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

ENABLE = (
    "enable I2C: sudo raspi-config nonint do_i2c 0 (or the line dtparam=i2c_arm=on in "
    "/boot/firmware/config.txt, and i2c-dev in /etc/modules), then reboot"
)
"""What to do where there is no bus."""


class I2cError(Exception):
    """The device does not answer, or is not what it should be."""


class Read(NamedTuple):
    """A step of a transfer: 1 or 2 bytes from a register on; the last one up to 32."""

    register: int
    size: int


class Write(NamedTuple):
    """A step of a transfer: bytes (1 to 32) from a register on."""

    register: int
    data: bytes


Step = Read | Write
Transfer = Callable[[float], Sequence[bytes]]
"""(seconds from now) -> what the steps read that it was prepared for. Raises I2cError:
then steps behind the one that failed may have been done all the same."""


class I2cDevice(Protocol):
    """One address on one bus. Its methods, and what they return, raise I2cError.

    Most are for buses that a program drives itself; a daemon has its own.
    """

    patience_s: float = 0.0
    """How long the bus may wait before a transfer; the caller waits else."""

    def read(self, register: int, size: int) -> bytes:
        """`size` bytes from a register on (1 to 32), as they come over the wire."""

    def write(self, register: int, data: bytes) -> None:
        """Writes bytes (1 to 32) from a register on."""

    def transfer(self, *steps: Step) -> Sequence[bytes]:
        """One step after the other; what was read."""
        return self.prepared(*steps)(0.0)

    def prepared(self, *steps: Step) -> Transfer:
        """The same again and again; a daemon gets all in one piece."""

        def transfer(after_s: float) -> list[bytes]:
            found = []
            for step in steps:
                if isinstance(step, Read):
                    found.append(self.read(*step))
                else:
                    self.write(*step)
            return found

        return transfer

    def posted(self, step: Write) -> Callable[[], None]:
        """A write again and again, which may return before it is done; then whatever
        comes next at this device raises what was wrong."""
        return lambda: self.write(*step)


class OpenDevice(I2cDevice, Protocol):
    """One that holds something open."""

    def close(self) -> None:
        """Lets go of it. Raises PinsFault where a daemon is the matter."""


Open = Callable[[int, int], OpenDevice]
"""(bus, address) -> device. Raises I2cError, in words that say what to do."""
