"""Reads segments of the store again: is each what its line says?"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from fpvcar.units import MB
from fpvstation.disk import Disk
from fpvstation.store import Store
from fpvstation.sums_file import Stored


class Verdict(NamedTuple):
    """One segment; `fault` "" is good. `judged`: else nobody knows, and it stays."""

    stored: Stored
    size: int
    fault: str
    judged: bool = True


def verify(
    store: Store, disk: Disk, segments: Iterable[Stored], most_mb_s: float,
    clock_s: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Verdict]:  # fmt: skip
    """Judges segments that are listed, slowly. What is bad is set aside, so that
    it is fetched again while the car or an office has it. What this machine may not
    read is told, and stays. Raises StoreGone."""
    begun_s, read = clock_s(), 0
    for one in segments:
        try:
            found = Verdict(one, disk.size(one.path) or 0, store.judge(one))
        except OSError as failed:
            found = Verdict(one, 0, failed.strerror or str(failed), False)
        yield found
        read += found.size
        ahead_s = read / (most_mb_s * MB) - (clock_s() - begun_s)
        if ahead_s > 0.0:
            sleep(ahead_s)
