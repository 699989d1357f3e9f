"""Shared code of the bit-banged interfaces: pin reservations, and time that passes inside a
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
"""Longest delay for which pigpio spins, and then for 1 us more. It sleeps for longer delays."""
AHEAD_US, STEPS = 1000, 16
"""Time and bytes that a transfer may run ahead before the rest of the daemon runs."""


class Use(Enum):
    """Interface for which a pin is open."""

    SERIAL = auto()
    SDA = auto()
    SCL = auto()
    CS = auto()
    MISO = auto()
    MOSI = auto()
    SCLK = auto()


Transfer = Generator[int, int, int | bytes]
"""Transfer as a generator: yields the time that it has reached, receives the time at which it
resumes."""


def stepwise(transfer: Transfer, now_us: int | None = None) -> Outcome:
    """Turn a transfer into a command that waits once per yield of the transfer."""
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
    def open(cls, pins: Pins, uses: dict[int, Use], roles: dict[int, Use]) -> "Bus":
        """Record in `uses` the interface for which each pin of `roles` is open."""
        uses.update(roles)
        return cls(tuple(roles), tuple(pins.mode(gpio) for gpio in roles))

    def close(self, pins: Pins, uses: dict[int, Use], now_us: int) -> None:
        """Restore the former modes of the pins and release them."""
        for gpio, mode in zip(self.gpios, self.modes, strict=True):
            pins.set_mode_register(gpio, mode, now_us)
            del uses[gpio]


def opened_at(opened: Mapping[int, T], request: Request, closed: Err) -> T | Err:
    """Return the object open at the GPIO of a request's first parameter, or `closed`."""
    if request.p1 >= USER_GPIO:
        return Err.BAD_USER_GPIO
    return opened.get(request.p1, closed)


class TimedPins:
    """Setter of pins, one after the other; `at_us` is the time of the last change.

    It runs ahead of the clock: a change is recorded with its future time, but a read returns the
    present level.
    """

    def __init__(self, pins: Pins, lines: Lines, baud: int) -> None:
        self._pins, self._lines = pins, lines
        delay_us = 500_000 // baud
        self.half_us = delay_us + (1 if delay_us <= BUSY_WAIT_MAX_US else 0)
        self.at_us = self._now_us = self._bytes = 0

    def begin(self, now_us: int) -> None:
        """Start another transfer, no earlier than the end of the last one."""
        self.at_us, self._now_us, self._bytes = max(self.at_us, now_us), now_us, 0

    def byte_done(self) -> Generator[int, int, None]:
        """Yield to the rest of the daemon every STEPS bytes, or when AHEAD_US ahead of the
        clock."""
        self._bytes += 1
        if self._bytes % STEPS == 0 or self.at_us - self._now_us >= AHEAD_US:
            self._now_us = yield self.at_us

    def end(self) -> Generator[int, int, None]:
        """Yield once more if the transfer is AHEAD_US ahead of the clock."""
        if self.at_us - self._now_us >= AHEAD_US:
            yield self.at_us

    def delay(self) -> None:
        """Advance the time by half a bit."""
        self.at_us += self.half_us

    def read(self, gpio: int) -> int:
        return self._lines.level(gpio, self.at_us)

    def write(self, gpio: int, level: int) -> None:
        """Write the pin's level register."""
        self._pins.set_level_register(gpio, level, self.at_us)

    def mode(self, gpio: int, mode: int) -> None:
        """Write the pin's mode register."""
        self._pins.set_mode_register(gpio, mode, self.at_us)
