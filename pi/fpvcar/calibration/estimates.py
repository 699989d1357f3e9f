"""Fits that turn sensor readings and people's measurements into values. Pure figures."""

import math
import statistics
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from fpvcar.wire.telemetry import Range

FRESH_S = 0.2
MOVED_M = 0.012
"""Smallest change of a range, in addition to its noise, that counts as motion."""
WINDOW_S = 1.0
NEWEST = 3
LEAST_RUN_S, LEAST_WAY_M, LEAST_SAMPLES = 0.6, 0.1, 8
TAUS_S = tuple(0.1 * 1.15**n for n in range(24))
"""Candidate time constants: 0.1 s to 2.5 s."""
GAINS = 5.0
"""Largest factor between a measured gain and the first guess."""
TRACK_M, WHEELBASE_M = 0.13, 0.16
"""Dimensions of a small car, for the first guess of a correction only."""


def is_fresh(reading: Range) -> bool:
    """Return whether the sensor has a fresh, valid range."""
    return (
        reading.state == "ok"
        and reading.range_m is not None
        and reading.age_s is not None
        and reading.age_s <= FRESH_S
    )


class MotionDetector:
    """Detects by the range sensors that a resting car begins to move.

    Their readings then differ from those of the last second at rest.
    """

    def __init__(self) -> None:
        self._still: dict[str, deque[tuple[float, float]]] = {}
        self._newest: dict[str, deque[tuple[float, float]]] = {}

    def moved(self, ranges: Sequence[Range], now_s: float, driven: bool) -> bool:
        """Process the readings; `driven` is True while the motor has a duty. Returns True once a
        sensor has detected motion."""
        return any(
            [self._sensor_moved(reading, now_s, driven) for reading in ranges if is_fresh(reading)]
        )

    def _sensor_moved(self, reading: Range, now_s: float, driven: bool) -> bool:
        assert reading.range_m is not None and reading.age_s is not None
        at_s = now_s - reading.age_s
        newest = self._newest.setdefault(reading.name, deque(maxlen=NEWEST))
        still = self._still.setdefault(reading.name, deque())
        if newest and at_s <= newest[-1][0] + 1e-4:
            return False
        newest.append((at_s, reading.range_m))
        if not driven or len(still) < NEWEST:
            still.append((at_s, reading.range_m))
            while still[0][0] < at_s - WINDOW_S:
                still.popleft()
            return False
        before = [range_m for _, range_m in still]
        by_m = statistics.median(range_m for _, range_m in newest)
        by_m -= statistics.median(before)
        return abs(by_m) > MOVED_M + 3.0 * statistics.pstdev(before)


class Run(NamedTuple):
    """Run at a throttle, with the speed that it tends to."""

    throttle: float
    speed_mps: float


def end_speed_mps(samples: Sequence[tuple[float, float]]) -> float | None:
    """Return the speed that a run tends to, from (s, m) of one sensor since its start.

    A motor behind a gear follows x = x0 + v (t - tau (1 - e^(-t/tau))). The fit picks the tau of
    least squares among TAUS_S, with v of a straight line for each. Returns None for a run that was
    too short.
    """
    if len(samples) < LEAST_SAMPLES:
        return None
    start_s = samples[0][0]
    span_s, way_m = samples[-1][0] - start_s, abs(samples[-1][1] - samples[0][1])
    if span_s < LEAST_RUN_S or way_m < LEAST_WAY_M:
        return None
    best: tuple[float, float] | None = None
    for tau_s in TAUS_S:
        if tau_s > span_s:  # a longer time constant would be a guess
            break
        points = [
            (t_s - tau_s * -math.expm1(-t_s / tau_s), range_m)
            for t_s, range_m in ((at_s - start_s, range_m) for at_s, range_m in samples)
        ]
        slope, error = _line(points)
        if best is None or error < best[1]:
            best = slope, error
    return abs(best[0]) if best else None


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return slope and mean squared error of a straight line through points."""
    slope, start = statistics.linear_regression(*zip(*points, strict=True))
    error = statistics.fmean((y - start - slope * x) ** 2 for x, y in points)
    return slope, error


def speed_line(runs: Sequence[Run]) -> tuple[float, float] | None:
    """Return (speed just over the dead band, speed at full throttle), by a straight line through
    all runs; None while all runs have the same throttle."""
    points = [(abs(run.throttle), run.speed_mps) for run in runs]
    if len({round(throttle, 2) for throttle, _ in points}) < 2:
        return None
    slope, start = statistics.linear_regression(*zip(*points, strict=True))
    return max(0.0, start), start + slope


def share_of(speed_mps: float, least_mps: float, top_mps: float) -> float:
    """Return the share of full throttle that gives a speed; 0..1."""
    if top_mps <= least_mps:
        return 1.0
    return min(max((speed_mps - least_mps) / (top_mps - least_mps), 0.0), 1.0)


class StraightRun(NamedTuple):
    """Straight run with a setting, and its end position; + aside is left."""

    setting: float
    way_m: float
    aside_m: float

    @property
    def bend(self) -> float:
        """1/radius in 1/m, + to the left: aside = way^2 / 2 radius, for small deviations."""
        return 2.0 * self.aside_m / (self.way_m**2 + self.aside_m**2)


def straight_setting(runs: Sequence[StraightRun], first_gain: float) -> float:
    """Return the setting with which the car would drive straight.

    After one run the estimate uses `first_gain` (setting per bend). After more runs it uses the
    line through the two with the smallest bends, if its gain is similar to `first_gain`: a PWM with
    few steps does not follow each setting.
    """
    best, *rest = sorted(runs, key=lambda run: abs(run.bend))
    for run in rest:
        bend = run.bend - best.bend
        if abs(run.setting - best.setting) > 1e-6 and abs(bend) > 1e-6:
            gain = (run.setting - best.setting) / bend
            if 1.0 / GAINS < gain / first_gain < GAINS:
                return best.setting - gain * best.bend
    return best.setting - first_gain * best.bend
