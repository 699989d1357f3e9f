"""Records each change of the motors' pins, to time a stop from the failure to motors off.

A poll returns the duty of each pin. The rig supplies it: from the bench's chip, or from
edges of pins wired to the motors' pins.
"""

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import NamedTuple, Self

from fpvcar.config import EscMotor
from fpvcar.devices.pins import Edges
from fpvcar.runtime.clock import Clock, ClockNs

EVERY_S = 0.0005
TRANSIENT_S, SETTLED_S = 0.02, 0.03
"""Pins of a bank switch one after the other; some back ends take this long."""
TICKS = 1 << 32
AT_NEUTRAL_US = 15.0
"""Distance from neutral within which a pulse drives no motor."""
SILENT_S = 0.05
"""Time without an edge after which an ESC gets no pulses: more than two periods."""


class Sample(NamedTuple):
    """Duties of the motors' pins at one moment of CLOCK_MONOTONIC."""

    time_ns: int
    duties: tuple[float, ...]

    @property
    def driving(self) -> bool:
        """True if exactly one of a bridge's two inputs is on; both on means braking."""
        pairs = zip(self.duties[::2], self.duties[1::2], strict=True)
        return any((forward > 0.0) != (reverse > 0.0) for forward, reverse in pairs)


class Scope(AbstractContextManager["Scope"]):
    """Recorder thread that polls until the context ends."""

    def __init__(
        self, poll: Callable[[], tuple[float, ...]], clock_ns: ClockNs = time.monotonic_ns
    ) -> None:
        self.samples: list[Sample] = []
        self._until_ns: list[int] = []
        """Time at which each sample was last seen unchanged."""
        self._poll, self._clock_ns = poll, clock_ns
        self._end = threading.Event()
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self.note()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def note(self) -> None:
        duties, now_ns = self._poll(), self._clock_ns()
        if not self.samples or self.samples[-1].duties != duties:
            self.samples.append(Sample(now_ns, duties))
            self._until_ns.append(now_ns)
        self._until_ns[-1] = now_ns

    def _watch(self) -> None:
        try:
            while not self._end.wait(EVERY_S):
                self.note()
        except Exception as fault:  # re-raised in the thread that reads the recording
            self._fault = fault

    @property
    def now(self) -> Sample:
        """Newest sample. Raises the exception of the poll, if any."""
        if self._fault is not None:
            raise self._fault
        return self.samples[-1]

    @property
    def driving(self) -> bool:
        """True if a motor runs now. Raises the exception of the poll, if any."""
        return self.now.driving

    @property
    def stands(self) -> bool:
        """No motor has run for SETTLED_S; late edges do not count as a stop."""
        return self._for_a_moment(braking=True)

    @property
    def released(self) -> bool:
        """All pins have been off for SETTLED_S: not even braking."""
        return self._for_a_moment(braking=False)

    def _for_a_moment(self, braking: bool) -> bool:
        """Return whether no motor has run, or braked if not `braking`, for SETTLED_S."""
        if self._fault is not None:
            raise self._fault
        since_ns = None
        for sample in reversed(self.samples):
            if sample.driving or (any(sample.duties) and not braking):
                break
            since_ns = sample.time_ns
        return since_ns is not None and (self._until_ns[-1] - since_ns > SETTLED_S * 1e9)

    def drove_at(self, time_ns: int) -> bool:
        """Return True if a motor ran at that time."""
        before = [sample for sample in self.samples if sample.time_ns <= time_ns]
        return bool(before) and before[-1].driving

    def stopped_after_s(self, since_ns: int) -> float:
        """Return the seconds from `since_ns` until a motor last ran; the car stands now."""
        last_ns = since_ns
        for sample, after in zip(self.samples, self.samples[1:], strict=False):
            if sample.driving and after.time_ns > since_ns:
                last_ns = max(last_ns, after.time_ns)
        return (last_ns - since_ns) / 1e9

    def moved_since(self, number: int) -> bool:
        """Return True if a motor ran again after sample `number` for longer than TRANSIENT_S. A
        change seen by a single poll does not count: the thread may have waited for a core."""
        together = list(zip(self.samples, self._until_ns, strict=False))[number:]
        return any(
            sample.driving and end_ns - sample.time_ns > TRANSIENT_S * 1e9
            for sample, end_ns in together
        )

    def neutral_before_silence(self) -> bool:
        """Return whether an ESC got neutral last: its pulses go on, or ended with neutral ones."""
        driven = [sample.driving for sample in self.samples if any(sample.duties)]
        return not (driven and driven[-1])

    def trace(self, since_ns: int) -> tuple[tuple[float, float], ...]:
        """Return (seconds, largest duty of a running motor) for each change."""
        return tuple(
            (
                round((sample.time_ns - since_ns) / 1e9, 6),
                round(max(sample.duties), 4) if sample.driving else 0.0,
            )
            for sample in self.samples
        )


class EdgeDuties:
    """Duties of pins derived from their edges: 1 or 0 for a steady pin, else 0.5.

    A PWM counts as ended after two periods without an edge, so a stop is detected that much later.
    """

    def __init__(
        self, edges: Edges, gpios: Sequence[int], period_s: float, clock_s: Clock = time.monotonic
    ) -> None:
        self._edges, self._gpios, self._clock_s = edges, gpios, clock_s
        self._patience_s = 2.0 * period_s
        self._last_s = dict.fromkeys(gpios, float("-inf"))

    def __call__(self) -> tuple[float, ...]:
        """Read pending edges and return the duties. Raises PinsFault."""
        now_s = self._clock_s()
        for edge in self._edges.read(0.0):
            self._last_s[edge.gpio] = now_s
        return tuple(self._duty(gpio, now_s) for gpio in self._gpios)

    def _duty(self, gpio: int, now_s: float) -> float:
        if now_s - self._last_s[gpio] < self._patience_s:
            return 0.5
        return float(self._edges.level(gpio))


class EscDuties:
    """Throttle of an ESC by the width of its newest pulse, in the form of two pins that drive and
    two that tell of pulses: (forward, backward, 1, 1), or zeros for none.

    `width_us` returns the width, 0 for none.
    """

    def __init__(self, width_us: Callable[[], float], esc: EscMotor) -> None:
        self._width_us, self._esc = width_us, esc

    def __call__(self) -> tuple[float, ...]:
        """Return the present throttle."""
        width_us, esc = self._width_us(), self._esc
        if not width_us:
            return 0.0, 0.0, 0.0, 0.0
        share = (width_us - esc.neutral_us) / (esc.forward_us - esc.neutral_us)
        if abs(width_us - esc.neutral_us) <= AT_NEUTRAL_US:
            share = 0.0
        return max(share, 0.0), max(-share, 0.0), 1.0, 1.0


class EdgeWidth:
    """Width in us of the newest pulse of a pin by its edges; 0 without one for SILENT_S."""

    def __init__(self, edges: Edges, gpio: int, clock_s: Clock = time.monotonic) -> None:
        self._edges, self._gpio, self._clock_s = edges, gpio, clock_s
        self._rise_us: int | None = None
        self._width_us, self._seen_s = 0, float("-inf")

    def __call__(self) -> float:
        """Read pending edges and return the width. Raises PinsFault."""
        now_s = self._clock_s()
        for edge in self._edges.read(0.0):
            if edge.gpio != self._gpio:
                continue
            if edge.level:
                self._rise_us = edge.tick_us
            elif self._rise_us is not None:
                self._width_us, self._seen_s = (edge.tick_us - self._rise_us) % TICKS, now_s
        return float(self._width_us) if now_s - self._seen_s < SILENT_S else 0.0


class Pulses(NamedTuple):
    """Pulses of a pin: duty, frequency by the median period (a new duty starts a new
    period), and the width of each pulse."""

    duty: float
    hz: float
    widths_us: tuple[int, ...]


def pulses(edges: Sequence[tuple[int, int]]) -> Pulses | None:
    """Return the whole periods in (tick in us, level) edges; None if there is not even one."""
    rises = [index for index, (_, level) in enumerate(edges) if level]
    if len(rises) < 2:
        return None
    first, last = rises[0], rises[-1]
    whole_us = (edges[last][0] - edges[first][0]) % TICKS
    periods = [(edges[after][0] - edges[before][0]) % TICKS for before, after in pairwise(rises)]
    widths = tuple((edges[index + 1][0] - edges[index][0]) % TICKS for index in rises[:-1])
    return Pulses(sum(widths) / whole_us, 1e6 / statistics.median(periods), widths)
