"""Types of clocks, and the plausibility of the wall clock: a Pi without network and clock battery
may be in 1970."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fpvcar.runtime.texts import Text

Clock = Callable[[], float]
"""Clock in s: time.monotonic, or time.time for UTC. Tests turn it by hand."""
ClockNs = Callable[[], int]
"""Clock in ns."""

EARLIEST_S = 1_767_225_600.0
"""2026-01-01 UTC, before the first car."""


def plausible(utc_s: float) -> bool:
    """Return whether the time is plausible for certificates and names of recordings."""
    return utc_s >= EARLIEST_S


def utc_text(utc_s: float) -> str:
    """Return the time as text, UTC."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(max(0.0, utc_s)))


def fault(utc_s: float) -> "Text":
    """Return the fault of the clock, with the next step."""

    from fpvcar.runtime.texts import Text  # not above: the guardian needs Clock only

    return Text(
        "clock",
        "the clock is wrong, {now} UTC: connect the car to the internet, or sudo date -s "
        '"2026-12-31 12:00"; then sudo systemctl restart fpvcar',
        now=utc_text(utc_s),
    )
