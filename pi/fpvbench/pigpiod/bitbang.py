"""The bit-banged interfaces share this: who uses a pin, and time that passes inside a
command."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeVar

from fpvbench.pigpiod.lines import USER_GPIO, Lines
from fpvbench.pigpiod.pins import Pins
from fpvbench.pigpiod.protocol import Err, Outcome, Request, Wait

T = TypeVar("T")
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


@dataclass(slots=True)
class Bus:
    """Pins that are open together, and the modes that they had before."""

    gpios: tuple[int, ...]
    modes: tuple[int, ...]

    @classmethod
    def open(cls, pins: Pins, uses: dict[int, Use], taken: dict[int, Use]) -> "Bus":
        """Notes in `uses` for what each pin of `taken` is open."""
        uses.update(taken)
        return cls(tuple(taken), tuple(pins.mode(gpio) for gpio in taken))

    def close(self, pins: Pins, uses: dict[int, Use], now_us: int) -> None:
        """Gives the pins the modes that they had; nobody uses them."""
        for gpio, mode in zip(self.gpios, self.modes, strict=True):
            pins.set_mode_register(gpio, mode, now_us)
            del uses[gpio]


def opened_at(opened: Mapping[int, T], request: Request, closed: Err) -> T | Err:
    """What is open at the GPIO of a request's first parameter; `closed`: nothing."""
    if request.p1 >= USER_GPIO:
        return Err.BAD_USER_GPIO
    return opened.get(request.p1, closed)


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
