"""External drive of pins, each change with its time: a ring buffer in the chip's
file, so that the pin daemon samples it like a pin instead of polling.

    writer      drive(soc, gpio, level)     store the entry, count it, set `external`
    reader      soc.outside.since(read)     the count, and the entries after `read`
"""

import ctypes
import time
from typing import Any

SIZE = 1024


class Change(ctypes.Structure):
    """Change of a pin's `external`, at a time of CLOCK_MONOTONIC."""

    _fields_ = [
        ("time_us", ctypes.c_uint64),
        ("gpio", ctypes.c_uint8),
        ("external", ctypes.c_uint8),
    ]
    time_us: int
    gpio: int
    external: int


class Outside(ctypes.Structure):
    """Ring of the last SIZE changes; `count` is their total number."""

    _fields_ = [("count", ctypes.c_uint64), ("changes", Change * SIZE)]
    count: int

    def since(self, read: int) -> tuple[int, list[tuple[int, int, int]]]:
        """Return the count, and the changes after the first `read`: (microseconds, GPIO, external).

        Overwritten changes are lost; `external` itself still has the level.
        """
        count = self.count
        ring = (self.changes[n % SIZE] for n in range(max(read, count - SIZE), count))
        return count, [(entry.time_us, entry.gpio, entry.external) for entry in ring]


def drive(soc: Any, gpio: int, external: int, at_us: int | None = None) -> None:
    """Set a pin of a Soc from outside: 0, 1 or FLOATING. One writer at a time."""
    outside = soc.outside
    entry = outside.changes[outside.count % SIZE]
    entry.time_us = time.monotonic_ns() // 1000 if at_us is None else at_us
    entry.gpio, entry.external = gpio, external
    outside.count += 1
    soc.pin[gpio].external = external
