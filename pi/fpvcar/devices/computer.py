"""Raw health data of a computer; sensors/computer.py interprets it."""

from typing import NamedTuple, Protocol


class ComputerReadings(NamedTuple):
    """Raw values; None where the source does not exist.

    `wireless` is /proc/net/wireless, `bit_rate` in bit/s, `disk_b` the free bytes of
    the folder `disk`; `life_times` and `ends` are life_time and pre_eol_info of each
    card, `mounts` is /proc/self/mounts, `board` a Raspberry Pi's name; `interface` is the
    name of the Wi-Fi interface.
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
    board: str | None = None
    disk: str = ""
    utc_s: float | None = None
    interface: str | None = None


class Computer(Protocol):
    """Health sources of one computer."""

    def read(self) -> ComputerReadings:
        """Read all sources; a hanging card blocks this call."""
