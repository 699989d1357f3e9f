"""I2C buses of the bench: devices with real register maps, called in-process."""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from typing import Protocol, TypeVar

from fpvbench import soc as chip

Answer = TypeVar("Answer")


class Nack(Exception):
    """Raised when an address or a written byte is not acknowledged."""


class Device(Protocol):
    """Chip on a simulated I2C bus."""

    @property
    def address(self) -> int:
        """7-bit address to which the chip responds now."""

    def write(self, data: bytes) -> None:
        """Process a write transaction. Raises Nack."""

    def read(self, count: int) -> bytes:
        """Process a read transaction of that many bytes. Raises Nack."""


Make = Callable[[chip.Soc], Sequence[Device]]
"""Maker of the devices of one option on a chip."""


class Bus:
    """Bus with devices. Devices that share an address receive the same bytes, and
    any device's 0 is a 0 (UM10204, 3.1.1: open drain)."""

    def __init__(self, *devices: Device) -> None:
        self.devices = list(devices)

    def write(self, address: int, data: bytes) -> None:
        """Write to a device. Raises Nack if it is absent or refuses."""
        self._each(address, lambda device: device.write(data))

    def read(self, address: int, count: int) -> bytes:
        """Read from a device. Raises Nack if it is absent or refuses."""
        answers = self._each(address, lambda device: device.read(count))
        return bytes(reduce(and_, together) for together in zip(*answers, strict=True))

    def _each(self, address: int, act: Callable[[Device], Answer]) -> list[Answer]:
        """Call all devices of an address; one acknowledgement is enough."""
        answers, nack = list[Answer](), Nack(f"no device at {address:#04x}")
        for device in [candidate for candidate in self.devices if candidate.address == address]:
            try:
                answers.append(act(device))
            except Nack as fault:
                nack = fault
        if not answers:
            raise nack
        return answers
