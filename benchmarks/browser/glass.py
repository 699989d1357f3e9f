"""Capture-to-screen latency: the age of each picture, read from the page by glass.js.

The source paints the car's clock into each picture just before its encoder (fpvbench.camera.strip);
a script in the page reads it back before every paint.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rig import wall_ahead_ms

SCRIPT = Path(__file__).with_name("glass.js").read_text(encoding="utf-8")
NEAR = 4
SETTLED = 5
"""Number of first pictures to ignore: they were in transit at the start of the script."""


@dataclass(frozen=True)
class PictureTimes:
    """Pictures in the order of display: their ages, and the times between, ms."""

    ages_ms: tuple[float, ...]
    gaps_ms: tuple[float, ...]


def age_ms(clock: float, shown_ms: float, ahead_ms: float) -> float:
    """Return the age of a picture from its clock, which counts modulo 2**32."""
    return (shown_ms - ahead_ms - clock + 2**31) % 2**32 - 2**31


def painted(samples: Sequence[Sequence[float]], ahead_ms: float) -> PictureTimes:
    """Return ages at the paints: the clock was on the canvas when the paint began."""
    pairs = [(clock, shown) for clock, shown in samples[SETTLED:]]
    return _times(pairs, ahead_ms)


def presented(samples: Sequence[Sequence[float]], ahead_ms: float) -> PictureTimes:
    """Return ages by a media element's report of each picture's display time.

    The element names the picture by its media time, and may already hold the next one when the
    strip is read: the strips around it only serve to locate media time 0. That point moves when the
    page gives the element a new source.
    """
    zeros_ms = [clock - media_s * 1000.0 for clock, _, media_s in samples]
    pairs = [
        (
            statistics.median(zeros_ms[max(0, at - NEAR) : at + NEAR + 1])
            + samples[at][2] * 1000.0,
            samples[at][1],
        )
        for at in range(SETTLED, len(samples))
    ]
    return _times(pairs, ahead_ms)


def _times(pairs: Sequence[tuple[float, float]], ahead_ms: float) -> PictureTimes:
    times = [shown for _, shown in pairs]
    return PictureTimes(
        tuple(age_ms(clock, shown, ahead_ms) for clock, shown in pairs),
        tuple(after - before for before, after in zip(times, times[1:], strict=False)),
    )


def begin(page: Any, selector: str) -> None:
    """Start the reader on the element that shows the picture."""
    page.evaluate(SCRIPT, selector)


def collect(page: Any) -> tuple[PictureTimes, PictureTimes | None]:
    """Return the (painted, presented) pictures since `begin`; only a <video> gives `presented`."""
    ahead_ms = wall_ahead_ms()
    samples = page.evaluate("window.glass")
    if len(samples["painted"]) <= SETTLED + 1:
        raise RuntimeError(f"{len(samples['painted'])} pictures with a clock were seen")
    shown = samples["presented"]
    return painted(samples["painted"], ahead_ms), (
        presented(shown, ahead_ms) if len(shown) > SETTLED + 1 else None
    )


def watch(page: Any, selector: str, seconds: float) -> tuple[PictureTimes, PictureTimes | None]:
    """Read pictures for so long; return them like `collect`."""
    begin(page, selector)
    page.wait_for_timeout(seconds * 1000)
    return collect(page)
