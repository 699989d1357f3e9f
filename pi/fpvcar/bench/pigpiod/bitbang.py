"""The bit-banged interfaces share this: who uses a pin, and time that passes inside a
command."""

from collections.abc import Generator
from enum import Enum, auto

from fpvcar.bench.pigpiod.lines import Lines
from fpvcar.bench.pigpiod.pins import Pins
from fpvcar.bench.pigpiod.protocol import Outcome, Wait

BUSY_WAIT_MAX_US = 100
"""pigpio spins for so long, and then a microsecond more; it sleeps for longer times."""
AHEAD_US, STEPS = 1000, 16
"""How far, and how many bytes, a transfer goes before the rest of the daemon runs."""


class Use(Enum):
    """Says for which interface a pin is open."""

    SERIAL = auto()
    SDA = auto()
    SCL = auto()
    CS = auto()
    MISO = auto()
    MOSI = auto()
    SCLK = auto()


Transfer = Generator[int, int, int | bytes]
"""Yields the time up to which it has gone, is sent the time at which it goes on."""


def stepwise(transfer: Transfer, now_us: int | None = None) -> Outcome:
    """Turns a transfer into a command that waits as often as the transfer yields."""
    try:
        until_us = next(transfer) if now_us is None else transfer.send(now_us)
    except StopIteration as end:
        result: int | bytes = end.value
        return result
    return Wait(until_us, lambda at_us: stepwise(transfer, at_us))


class TimedPins:
    """Sets pins one after the other; `at_us` is the time of the last change.

    It runs ahead of the clock: what it sets is recorded with its time in future, what
    it reads is the level of now.
    """

    def __init__(self, pins: Pins, lines: Lines, baud: int) -> None:
        self._pins, self._lines = pins, lines
        delay_us = 500_000 // baud
        self.half_us = delay_us + (1 if delay_us <= BUSY_WAIT_MAX_US else 0)
        self.at_us = 0

    def begin(self, now_us: int) -> None:
        """Begins another transfer, behind the last one."""
        self.at_us = max(self.at_us, now_us)

    def delay(self) -> None:
        """Lets half a bit pass."""
        self.at_us += self.half_us

    def read(self, gpio: int) -> int:
        """Returns the pin's level."""
        return self._lines.level(gpio, self.at_us)

    def write(self, gpio: int, level: int) -> None:
        """Writes the pin's level register."""
        self._pins.set_level_register(gpio, level, self.at_us)

    def mode(self, gpio: int, mode: int) -> None:
        """Writes the pin's mode register."""
        self._pins.set_mode_register(gpio, mode, self.at_us)
