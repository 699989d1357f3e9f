"""What a computer says of itself, raw; sensors/computer.py understands it."""

from typing import NamedTuple, Protocol


class Found(NamedTuple):
    """What was read; None where there is no such source.

    `wireless` is /proc/net/wireless, `bit_rate` bit/s, `disk_b` what is free, bytes, in
    the folder `disk`; `life_times` and `ends` are life_time and pre_eol_info of each
    card, `mounts` is /proc/self/mounts; `interface` is the Wi-Fi's name.
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
    life_times: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    mounts: str | None = None
    disk: str = ""
    utc_s: float | None = None
    interface: str | None = None


class Computer(Protocol):
    """The sources of one computer."""

    def read(self) -> Found:
        """What they all say now; a card that hangs holds it up."""
