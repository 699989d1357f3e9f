"""pigpio's glitch and noise filters, on changes instead of every sample.

Both take one pin's samples of a batch (the first sample, then the level changes) and return the
filtered samples in the same shape. Their state carries over to the next batch. The quirks match
alertGlitchFilter and alertNoiseFilter in pigpio.c, version 79. A glitch filter starts at the pin's
present level. Outside of its window, a noise filter shows the level before the last window, low
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
    """Filter of samples. It processes only the samples that matter: the given ones, and the times
    of possible changes of its output."""

    def run(self, samples: Samples, end_us: int) -> list[tuple[int, int]]:
        """Return the filtered samples up to `end_us`: the first sample, then changes."""
        out: list[tuple[int, int]] = []
        for index, (time_us, level) in enumerate(samples):
            following = samples[index + 1 :]
            next_us = following[0][0] if following else end_us + 1
            at_us: int | None = time_us
            while at_us is not None and at_us < next_us:
                filtered = self._sample(at_us, level)
                if not out or filtered != out[-1][1]:
                    out.append((at_us, filtered))
                awaited_us = self.awaits_us()
                if awaited_us is not None:
                    awaited_us = max(sampled(awaited_us * 1000), at_us + SAMPLE_US)
                at_us = awaited_us
        return out

    @abstractmethod
    def _sample(self, at_us: int, level: int) -> int:
        """Process one sample; return the filtered level."""

    @abstractmethod
    def awaits_us(self) -> int | None:
        """Return the time at which a sample of the same level would change the output, or None."""


@dataclass(slots=True)
class Glitch(Filter):
    """Filter that shows a level once it has been steady for `steady_us`, with that delay."""

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
    """Filter that shows changes for `active_us` after an edge that ended a steady time."""

    steady_us: int = 0
    active_us: int = 0
    quiet_from_us: int = 0
    shuts_us: int | None = None
    """Closing time of the open window, or None while it is closed."""
    level: int = 0
    held: int = 0
    """Level shown while the window is closed."""

    def set(self, steady_us: int, active_us: int, now_us: int) -> None:
        """Reset the filter with new times; a steady time of 0 switches it off. Its levels stay."""
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
