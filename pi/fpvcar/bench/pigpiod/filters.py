"""pigpio's glitch and noise filters, on edges instead of samples.

Both take one pin's edges of a batch and give those that are reported, and carry
their state to the next batch. The quirks are those of alertGlitchFilter and
alertNoiseFilter in pigpio.c: setting a glitch filter shows the inverse level for
`steady_us`; a noise filter outside of its window shows the level before the window.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fpvcar.bench.pigpiod.pwm import sampled

STEADY_MAX_US = 300_000
ACTIVE_MAX_US = 1_000_000
Edges = Sequence[tuple[int, int]]
"""(time in microseconds, level), in order."""


@dataclass(slots=True)
class Glitch:
    """Reports a level once it was steady for `steady_us`, that much late."""

    steady_us: int
    level: int
    changed_us: int
    reported: int = -1

    def __post_init__(self) -> None:
        self.reported = 1 - self.level

    def sync(self, level: int, now_us: int) -> None:
        """The pin begins to be watched."""
        if level != self.level:
            self.level, self.changed_us = level, now_us
        elif now_us - self.changed_us >= self.steady_us:
            self.reported = level

    def run(self, edges: Edges, shown: int, end_us: int) -> list[tuple[int, int]]:
        """The edges to report up to `end_us`; `shown` is the level last reported."""
        out: list[tuple[int, int]] = []
        if self.reported != shown:
            out.append((self.changed_us, self.reported))
        for time_us, level in (*edges, (end_us, -1)):
            ripe_us = sampled((self.changed_us + self.steady_us) * 1000)
            due = ripe_us < time_us or (level < 0 and ripe_us <= time_us)
            if self.level != self.reported and due:
                self.reported = self.level
                out.append((ripe_us, self.level))
            if level >= 0 and level != self.level:
                self.level, self.changed_us = level, time_us
        return out


@dataclass(slots=True)
class Noise:
    """Reports changes for `active_us` after an edge that ended a steady time."""

    steady_us: int
    active_us: int
    level: int
    quiet_from_us: int
    held: int = 0
    """What is shown while the window is shut."""
    shut_us: int | None = None
    """When the open window shuts; None while it is shut."""

    def sync(self, level: int, now_us: int) -> None:
        """The pin begins to be watched."""
        self.level = level

    def run(self, edges: Edges, shown: int, end_us: int) -> list[tuple[int, int]]:
        """The edges to report up to `end_us`; `shown` is the level last reported."""
        out: list[tuple[int, int]] = []
        if self.shut_us is None and self.held != shown:
            out.append((self.quiet_from_us, self.held))
        for time_us, level in (*edges, (end_us, -1)):
            if self.shut_us is not None and self.shut_us <= time_us:
                self.quiet_from_us = sampled(self.shut_us * 1000)
                self.shut_us = None
                if self.held != self.level:
                    out.append((self.quiet_from_us, self.held))
            if level < 0 or level == self.level:
                continue
            if self.shut_us is None:
                quiet_us = time_us - self.quiet_from_us
                self.quiet_from_us = time_us
                if quiet_us >= self.steady_us:
                    self.held = self.level
                    self.shut_us = time_us + self.active_us
            if self.shut_us is not None:
                out.append((time_us, level))
            self.level = level
        return out
