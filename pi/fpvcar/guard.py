"""The collision guard: how fast the car may go towards what its sensors see. Pure.

A sensor counts for a direction if it looks that way within HALF_DEG. How far it is to
what it sees, less where the car is to stand, must hold the way of a stop: a reaction at
the present speed, then the brake. The speed is what the ranges say (they shrink), for
the car has no other eye for it.

    warn   tells the page and limits nothing
    limit  limits throttle, and stops where even nothing would be too fast
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from fpvcar import config, wire

HALF_DEG = 45.0
SAMPLES = 6
"""Of one sensor, for its closing speed: 0.15 s at 30 Hz."""
LEAST_SHARE = 0.05
"""Less throttle than this is none: it would only hum."""


class Free(NamedTuple):
    """The share of full throttle that may be used forward and backward; 1 is all."""

    ahead: float = 1.0
    back: float = 1.0


class Approach:
    """The closing speed of one sensor: a straight line through its last ranges."""

    def __init__(self) -> None:
        self._last: deque[tuple[float, float]] = deque(maxlen=SAMPLES)

    def add(self, range_m: float | None, at_s: float) -> None:
        """A measurement; the same one again is not a new one."""
        if range_m is None:
            self._last.clear()
        elif not self._last or at_s > self._last[-1][0]:
            self._last.append((at_s, range_m))

    def speed_mps(self) -> float:
        """How fast it comes nearer, >= 0; 0 with fewer than three samples."""
        if len(self._last) < 3:
            return 0.0
        middle_s = sum(at_s for at_s, _ in self._last) / len(self._last)
        spread = sum((at_s - middle_s) ** 2 for at_s, _ in self._last)
        slope = sum((at_s - middle_s) * range_m for at_s, range_m in self._last)
        return max(0.0, -slope / spread)


def share(
    range_m: float | None, age_s: float, speed_mps: float, guard: config.Guard
) -> float:
    """The greatest share of full throttle towards what is `range_m` away."""
    if range_m is None:
        return 1.0
    reaction_s = guard.reaction_s + age_s
    room_m = range_m - guard.stop_m
    way_m = speed_mps * reaction_s + speed_mps**2 / (2.0 * guard.brake_mps2)
    if way_m >= room_m:
        return 0.0
    # v t + v^2 / 2a = room, for v
    lag_mps = guard.brake_mps2 * reaction_s
    most_mps = math.sqrt(lag_mps**2 + 2.0 * guard.brake_mps2 * room_m) - lag_mps
    most = most_mps / guard.top_mps
    return 0.0 if most < LEAST_SHARE else min(most, 1.0)


class Guard:
    """Ranges -> what is free. Time is passed in."""

    def __init__(self, settings: config.Guard) -> None:
        self._settings = settings
        self._approaches: dict[str, Approach] = {}

    def look(self, ranges: Sequence[wire.Range], now_s: float) -> Free:
        """What is free now, by all sensors."""
        return Free(self._way(0.0, ranges, now_s), self._way(180.0, ranges, now_s))

    def _way(
        self, bearing_deg: float, ranges: Sequence[wire.Range], now_s: float
    ) -> float:
        return min(
            (
                self._one(one, now_s)
                for one in ranges
                if abs((one.bearing_deg - bearing_deg + 180.0) % 360.0 - 180.0)
                <= HALF_DEG
            ),
            default=1.0,
        )

    def _one(self, one: wire.Range, now_s: float) -> float:
        if one.state != "ok" or one.age_s is None or one.age_s > self._settings.stale_s:
            return self._settings.unseen_limit
        approach = self._approaches.setdefault(one.name, Approach())
        approach.add(one.range_m, now_s - one.age_s)
        return share(one.range_m, one.age_s, approach.speed_mps(), self._settings)
