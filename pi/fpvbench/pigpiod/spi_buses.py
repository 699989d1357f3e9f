"""The chip's two SPI buses: their pins, and what is on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class SpiDevice(Protocol):
    """Is a chip on an SPI bus, in mode 0."""

    def transfer(self, sent: bytes, idle: int) -> bytes:
        """Returns its answer while it is selected; `idle` is MISO without it."""


@dataclass(frozen=True)
class Bus:
    """Names the pins of a bus, and their mode for the SPI hardware."""

    selects: tuple[int, ...]
    miso: int
    mosi: int
    sclk: int
    mode: int


MAIN = Bus((8, 7), 9, 10, 11, mode=4)
"""ALT0. Its selects are driven by the hardware."""
AUXILIARY = Bus((18, 17, 16), 19, 20, 21, mode=3)
"""ALT4. pigpio drives its selects itself."""


class Devices:
    """Finds what is on the buses, by the GPIO that selects it."""

    def __init__(self, devices: Mapping[int, SpiDevice]) -> None:
        self._devices = devices

    def at(self, select: int, bus: tuple[int, int, int]) -> SpiDevice | None:
        """Returns the device at these pins: its select, and MISO, MOSI, SCLK."""
        for own in (MAIN, AUXILIARY):
            if select in own.selects and bus == (own.miso, own.mosi, own.sclk):
                return self._devices.get(select)
        return None
