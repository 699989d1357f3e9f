"""What a computer says of itself, raw; sensors/computer.py understands it."""

from typing import NamedTuple, Protocol


class Found(NamedTuple):
    """What was read; None where there is no such source.

    `wireless` is /proc/net/wireless, `bit_rate` bit/s, `disk_b` what is free, bytes.
    """

    throttled: str | None = None
    alarm: str | None = None
    milli_c: str | None = None
    wireless: str | None = None
    bit_rate: int | None = None
    meminfo: str | None = None
    loadavg: str | None = None
    uptime: str | None = None
    disk_b: int | None = None


class Computer(Protocol):
    """The sources of one computer."""

    def read(self) -> Found:
        """What they all say now; a card that hangs holds it up."""
