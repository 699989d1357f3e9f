"""pigpio's glitch and noise filters, on changes instead of every sample.

Both take one pin's samples of a batch (the first one, and those at which the level
changes) and give what is shown instead, in the same shape. They carry their state to
the next batch. The quirks are those of alertGlitchFilter and alertNoiseFilter in
pigpio.c, version 79: a glitch filter starts at the level that the pin has; a noise
filter shows, outside of its window, the level before the last window, and that is low
before the first one.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from fpvbench.pigpiod.pwm import SAMPLE_US, sampled

STEADY_MAX_US = 300_000
ACTIVE_MAX_US = 1_000_000
Samples = Sequence[tuple[int, int]]
"""(time in microseconds, level), in order: the batch's first sample, then changes."""


class Filter(ABC):
    """Looks at the samples that matter: those given, and where time decides."""

    def run(self, samples: Samples, end_us: int) -> list[tuple[int, int]]:
        """Returns what is shown up to `end_us`: the first sample, then changes."""
        out: list[tuple[int, int]] = []
        for index, (time_us, level) in enumerate(samples):
            after = samples[index + 1 :]
            next_us = after[0][0] if after else end_us + 1
            at_us: int | None = time_us
            while at_us is not None and at_us < next_us:
                shown = self._sample(at_us, level)
                if not out or shown != out[-1][1]:
                    out.append((at_us, shown))
                awaited_us = self.awaits_us()
                if awaited_us is not None:
                    awaited_us = max(sampled(awaited_us * 1000), at_us + SAMPLE_US)
                at_us = awaited_us
        return out

    @abstractmethod
    def _sample(self, at_us: int, level: int) -> int:
        """Takes one sample; returns the level to show."""

    @abstractmethod
    def awaits_us(self) -> int | None:
        """Tells when a sample of the same level would matter."""


@dataclass(slots=True)
class Glitch(Filter):
    """Shows a level once it was steady for `steady_us`, that much late."""

    steady_us: int
    reported: int | None = None
    level: int = 0
    changed_us: int = 0

    def _sample(self, at_us: int, level: int) -> int:
        if self.reported is None:
            self.reported = self.level = level
        if level != self.level:
            self.level, self.changed_us = level, at_us
        if level != self.reported and at_us - self.changed_us >= self.steady_us:
            self.reported = level
        return self.reported

    def awaits_us(self) -> int | None:
        if self.level == self.reported:
            return None
        return self.changed_us + self.steady_us


@dataclass(slots=True)
class Noise(Filter):
    """Shows changes for `active_us` after an edge that ended a steady time."""

    steady_us: int = 0
    active_us: int = 0
    quiet_from_us: int = 0
    shuts_us: int | None = None
    """When the open window shuts; None while it is shut."""
    level: int = 0
    held: int = 0
    """What is shown while the window is shut."""

    def set(self, steady_us: int, active_us: int, now_us: int) -> None:
        """Sets the filter anew; a steady time of 0 switches it off. Its levels stay."""
        self.steady_us, self.active_us = steady_us, active_us
        self.quiet_from_us, self.shuts_us = now_us, None

    def _sample(self, at_us: int, level: int) -> int:
        if self.shuts_us is not None:
            if at_us >= self.shuts_us:
                self.quiet_from_us, self.shuts_us = at_us, None
        elif level != self.level:
            quiet_us, self.quiet_from_us = at_us - self.quiet_from_us, at_us
            if quiet_us >= self.steady_us:
                self.held, self.shuts_us = self.level, at_us + self.active_us
        self.level = level
        return self.held if self.shuts_us is None else level

    def awaits_us(self) -> int | None:
        return self.shuts_us
