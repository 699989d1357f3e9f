"""pigpio's PWM: frequencies and ranges, and a pulse train as a function of time.

All trains share one time base, as they share one DMA loop: periods start at multiples of the
period.
"""

from collections.abc import Iterator
from dataclasses import dataclass

SAMPLE_US = 5
"""pigpiod's default sample rate (option -s)."""
CYCLES = (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50, 80, 100, 160, 200, 400, 800)
REAL_RANGES = tuple(25 * cycles for cycles in CYCLES)
FREQUENCIES = tuple(round(1e6 / (25 * SAMPLE_US * cycles)) for cycles in CYCLES)
DEFAULT_INDEX = 5
DEFAULT_RANGE = 255
RANGE_MIN, RANGE_MAX = 25, 40000
SERVO_MIN_US, SERVO_MAX_US = 500, 2500
SERVO_PERIOD_US = 20_000
FASTEST_SEEN_NS = 2 * SAMPLE_US * 1000
"""Shortest visible period; a train of a shorter period falls between the samples."""


def frequency_index(hz: int) -> int:
    """Find the selectable frequency nearest to `hz`; the higher one of two equally near."""
    return min(range(len(CYCLES)), key=lambda i: abs(FREQUENCIES[i] - hz))


def period_us(index: int) -> int:
    """Return the length of a period at a selectable frequency."""
    return REAL_RANGES[index] * SAMPLE_US


def on_us(duty: int, duty_range: int, index: int) -> int:
    """Compute the high time in each period, rounded down to whole samples."""
    return duty * REAL_RANGES[index] // duty_range * SAMPLE_US


def servo_on_us(width_us: int) -> int:
    """Compute the high time of a servo pulse, rounded down to whole samples."""
    return width_us // SAMPLE_US * SAMPLE_US


def sampled(time_ns: int) -> int:
    """Return the time of the first sample at or after `time_ns`."""
    return -(-time_ns // (SAMPLE_US * 1000)) * SAMPLE_US


@dataclass(frozen=True, slots=True)
class PulseTrain:
    """Pin that goes high at each period's start and low `on_ns` later."""

    on_ns: int
    period_ns: int
    start_us: int
    """Time at which the train was set; it rises first at the next start of a period."""
    before: int
    """Pin's level at the start of the train."""
    hold_ns: int
    """Time for which that level lasts, counted from the beginning of the starting period."""
    mode: int
    """Pin mode that outputs the train: OUTPUT, or an alternate function."""

    def level(self, at_us: int) -> int:
        """Return the pin's level at a time not before the start."""
        phase = self.start_us * 1000 % self.period_ns
        passed = (at_us - self.start_us) * 1000
        if phase and phase + passed < self.period_ns:
            return int(self.before and phase + passed < self.hold_ns)
        return int(at_us * 1000 % self.period_ns < self.on_ns)

    def edges(self, after_us: int, until_us: int) -> Iterator[tuple[int, int]]:
        """Yield (sample time, level) of the edges in after_us < t <= until_us."""
        if self.period_ns < FASTEST_SEEN_NS:
            return
        first_ns = max(after_us, self.start_us) * 1000
        number = first_ns // self.period_ns
        while (start := number * self.period_ns) <= until_us * 1000:
            regular = start >= self.start_us * 1000
            on_ns = self.on_ns if regular else self.hold_ns
            off = start + on_ns
            if regular and on_ns and after_us < sampled(start) <= until_us:
                yield sampled(start), 1
            if on_ns < self.period_ns and after_us < sampled(off) <= until_us:
                yield sampled(off), 0
            number += 1

    @classmethod
    def replacing(
        cls,
        old_train: "PulseTrain | None",
        on_ns: int,
        period_ns: int,
        now_us: int,
        level: int,
        mode: int,
    ) -> "PulseTrain":
        """Create a train that is set at `now_us`; the old one's pulse ends first."""
        phase_ns = now_us * 1000 % period_ns
        if phase_ns < on_ns:
            hold_ns = on_ns
        elif old_train and old_train.period_ns == period_ns:
            hold_ns = old_train.on_ns
        else:
            hold_ns = period_ns
        return cls(on_ns, period_ns, now_us, level, hold_ns, mode)

    def pulse_end_us(self, at_us: int) -> int:
        """Return the end of the pulse that is high at `at_us`."""
        start = at_us * 1000 // self.period_ns * self.period_ns
        return (start + self.on_ns) // 1000
