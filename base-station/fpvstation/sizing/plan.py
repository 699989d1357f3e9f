"""Plan of a store: when each tier is full, and how long it takes to read, restore and copy it."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fpvcar.recordings.export.progress import span
from fpvcar.runtime.texts import Phrase, Text
from fpvcar.runtime.units import MB
from fpvstation.errors import StationError
from fpvstation.sizing.measure import Measured

SIZE_FULL = Phrase("size_full", "full in {days} days: {free} of {total} GB are free")
SIZE_RESTORE = Phrase("size_restore", "restore all of it to the fastest disk: {time}")
SIZE_COPY = Phrase("size_copy", "copy a day to it: {time}; the limit is {limit}")

CAR_MBIT = 2.2
"""Recorded data of a car: 2 Mbit/s of video, and all sensors."""
LINK_MBIT = 1000.0
WRITES = Phrase("size_writes", "its writes, {rate} MB/s")
LINK = Phrase("size_link", "the link, {rate} MB/s")
HOUR_S = 3600.0
VERIFY_RATE = 50.0 * MB
"""Rate of `fpvstation verify`, unless a person sets another one."""


class Demand(NamedTuple):
    """Recordings of a day. `link`: bytes a second between station, cars and remotes."""

    cars: int
    hours: float
    mbit: float = CAR_MBIT
    link_mbit: float = LINK_MBIT

    @property
    def daily(self) -> float:
        """Bytes a day."""
        return self.cars * self.hours * HOUR_S * self.mbit * MB / 8

    @property
    def link(self) -> float:
        """Bytes a second."""
        return self.link_mbit * MB / 8


class Tier(NamedTuple):
    """Layer of the pyramid. Times are for the whole tier when it is full."""

    measured: Measured
    total: int
    free: int
    days: float
    """Days until it is full."""
    verify_s: float
    restore_s: float
    """Time to restore all of it over the link to the fastest tier."""
    copy_s: float
    """Time to copy a day's recordings to it over the link."""
    limit: Text
    """Slowest part of a copy to this tier."""

    def lines(self) -> list[Text]:
        """Return the plan of this tier."""
        free, total = (f"{size / 1000 / MB:.0f}" for size in (self.free, self.total))
        return [
            SIZE_FULL(days=f"{self.days:.1f}", free=free, total=total),
            Text("size_verify", "verify all of it, when full: {time}", time=span(self.verify_s)),
            SIZE_RESTORE(time=span(self.restore_s)),
            SIZE_COPY(time=span(self.copy_s), limit=self.limit),
        ]


class Unmeasured(StationError):
    """No disk has figures yet; the text has the command that measures them."""


def plan(demand: Demand, measured: Sequence[Measured]) -> list[Tier]:
    """Return the tiers, fastest first; folders that are gone are left out. Raises
    Unmeasured."""
    present = [figures for figures in measured if os.path.isdir(figures.folder)]
    if not present:
        raise Unmeasured(
            Text("size_unmeasured", "no disk was measured yet: fpvstation measure DIR...")
        )
    present.sort(key=lambda figures: figures.latency_s)
    return [_tier(demand, figures, present[0]) for figures in present]


def _tier(demand: Demand, measured: Measured, fastest: Measured) -> Tier:
    usage = shutil.disk_usage(Path(measured.folder))
    inward = min(measured.append, demand.link)
    limit = WRITES if inward == measured.append else LINK
    return Tier(
        measured,
        usage.total,
        usage.free,
        usage.free / demand.daily,
        usage.total / min(measured.read, VERIFY_RATE),
        usage.total / min(measured.read, demand.link, fastest.append),
        demand.daily / inward,
        limit(rate=f"{inward / MB:.0f}"),
    )
