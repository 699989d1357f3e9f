"""BSC: the chip as an I2C or SPI slave. The bench has no master, so sent bytes stay in the FIFO
of 16 bytes, and no byte is received."""

from fpvbench.pigpiod.pins import Pins
from fpvbench.pigpiod.protocol import Request

FIFO = 16
SPI, BREAK = 1 << 1, 1 << 7
"""Bits of the control register: SPI instead of I2C; break: clear both FIFOs."""
I2C_PINS, SPI_PINS = (18, 19), (18, 19, 20, 21)
ALT3 = 7
INPUT = 0
RX_EMPTY, TX_FULL, TX_EMPTY = 1 << 1, 1 << 2, 1 << 4
TX_LEVEL = 6
"""Lowest of the flag-register bits that count the bytes waiting to be sent."""


class Bsc:
    """Handler of BSCX: returns a status and the bytes received from a master: always 0 bytes."""

    def __init__(self, pins: Pins) -> None:
        self._pins = pins
        self._waiting = 0
        self._claimed: tuple[int, ...] = ()

    def transfer(self, request: Request, now_us: int) -> bytes:
        """Fill the FIFO and return the status; a control word of 0 frees the pins."""
        control, data = request.p1, request.ext[:512]
        if not control:
            for gpio in self._claimed:
                self._pins.set_mode(gpio, INPUT, now_us)
            self._claimed, self._waiting = (), 0
            return bytes(4)
        pins = SPI_PINS if control & SPI else I2C_PINS
        if len(pins) > len(self._claimed):
            for gpio in pins:
                self._pins.set_mode(gpio, ALT3, now_us)
            self._claimed, self._waiting = pins, 0
        if control & BREAK:
            self._waiting = 0
        copied = min(len(data), FIFO - self._waiting)
        self._waiting += copied
        flags = RX_EMPTY | self._waiting << TX_LEVEL
        flags |= 0 if self._waiting else TX_EMPTY
        flags |= TX_FULL if self._waiting == FIFO else 0
        return (copied << 16 | flags).to_bytes(4, "little")
