"""SPI buses of the chip: the pins of both, and the devices on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class SpiDevice(Protocol):
    """Chip on an SPI bus, in mode 0."""

    def transfer(self, sent: bytes, idle: int) -> bytes:
        """Return the device's answer while it is selected; `idle` is the undriven level of MISO."""


@dataclass(frozen=True)
class Bus:
    """Pins of a bus, and their mode for the SPI hardware."""

    selects: tuple[int, ...]
    miso: int
    mosi: int
    sclk: int
    mode: int


MAIN = Bus((8, 7), 9, 10, 11, mode=4)
"""Bus in mode ALT0. The hardware drives its selects."""
AUXILIARY = Bus((18, 17, 16), 19, 20, 21, mode=3)
"""Bus in mode ALT4. pigpio drives its selects itself."""


class Devices:
    """Devices on the buses, keyed by the GPIO that selects them."""

    def __init__(self, devices: Mapping[int, SpiDevice]) -> None:
        self._devices = devices

    def at(self, select: int, bus: tuple[int, int, int]) -> SpiDevice | None:
        """Return the device at these pins: its select, and MISO, MOSI, SCLK."""
        for pins in (MAIN, AUXILIARY):
            if select in pins.selects and bus == (pins.miso, pins.mosi, pins.sclk):
                return self._devices.get(select)
        return None
