"""Choice of episodes, ticks and frames. Pure. All times are UTC in ns.

    spans of drivers or marks, capture times -> stretches -> ticks of a constant rate

A tick takes the newest frame that is not later than it. The first tick comes half a period after
its frame: jitter of less than that neither doubles nor drops a frame.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from fpvcar.runtime.units import SECOND_NS

HOLE_NS = SECOND_NS // 2
"""Longest time between two frames within an episode."""
DRIFT_SHARE = 0.005
"""Largest difference of a camera's own rate at which the ticks follow the camera's clock."""


class Size(NamedTuple):
    """Size of pictures in pixels."""

    width: int
    height: int


class Span(NamedTuple):
    """Time range of one driver; `task` is "" without a mark."""

    start_ns: int
    end_ns: int
    driver: str
    task: str = ""


class Stretch(NamedTuple):
    """Frames `first` to before `end` of a recording, without a hole."""

    span: Span
    first: int
    end: int


class Ticks(NamedTuple):
    """Ticks of a stretch of `length` frames: the time of each, and the number of its frame."""

    length: int
    times_ns: list[int]
    frames: list[int]

    @property
    def doubled(self) -> int:
        """Return the number of ticks whose frame an earlier tick has."""
        return len(self.frames) - len(set(self.frames))

    @property
    def dropped(self) -> int:
        """Return the number of the stretch's frames that no tick takes."""
        return self.length - len(set(self.frames))


def rate_of(captures: Sequence[int]) -> int:
    """Return the usual number of frames per second; 0 if there are fewer than two frames."""
    if len(captures) < 2:
        return 0
    return round(SECOND_NS / max(1, median(b - a for a, b in pairwise(captures))))


def marked(spans: Sequence[Span], marks: Sequence[tuple[int, str]]) -> list[Span]:
    """Return a span per mark: it ends at the next mark, or with its driver's span."""
    cut = list[Span]()
    for span in spans:
        inside = [mark for mark in sorted(marks) if span.start_ns <= mark[0] < span.end_ns]
        for (start_ns, text), (end_ns, _) in pairwise([*inside, (span.end_ns, "")]):
            cut.append(Span(start_ns, end_ns, span.driver, text))
    return cut


def stretches(
    spans: Sequence[Span], captures: Sequence[int], keys: Sequence[int], from_key: bool
) -> list[Stretch]:
    """Cut the spans at each hole between their frames.

    `captures` ascend. `from_key`: a stretch begins with a key frame, as a copy of the video must.
    """
    cut = list[Stretch]()
    for span in spans:
        low = bisect_left(captures, span.start_ns)
        high = bisect_right(captures, span.end_ns)
        holes = (at for at in range(low + 1, high) if captures[at] - captures[at - 1] > HOLE_NS)
        for first, end in pairwise([low, *holes, high]):
            while from_key and first < end and not keys[first]:
                first += 1
            if first < end:
                cut.append(Stretch(span, first, end))
    return cut


def ticks(captures: Sequence[int], first: int, end: int, fps: int) -> Ticks:
    """Return the ticks over the frames `first` to before `end`, which must not be empty."""
    period_ns = _period_ns(captures[first:end], fps)
    start_ns = captures[first] + period_ns / 2
    count = round((captures[end - 1] - captures[first]) / period_ns) + 1
    times = [round(start_ns + number * period_ns) for number in range(count)]
    frames = [bisect_right(captures, time, first, end) - 1 for time in times]
    return Ticks(end - first, times, frames)


def _period_ns(captures: Sequence[int], fps: int) -> float:
    """Return the time between two ticks: 1/fps, or the camera's own period if that is close."""
    usual_ns = SECOND_NS / fps
    periods = sum(round((after - before) / usual_ns) for before, after in pairwise(captures))
    own_ns = (captures[-1] - captures[0]) / periods if periods else usual_ns
    return own_ns if abs(own_ns / usual_ns - 1.0) <= DRIFT_SHARE else usual_ns
