"""Collision guard: limits the speed towards obstacles that the sensors see. Pure.

A sensor counts for a direction if its bearing lies within HALF_DEG of it. Its range, less the
distance at which the car is to stand, must exceed the stopping distance: a reaction at the present
speed, then the brake. The speed is the rate at which the ranges shrink, because the car has no
other speed measurement. If a sensor loses its obstacle or fails, the guard keeps the obstacle and
estimates its distance from the throttle until the sensor sees again.

    warn   informs the page and limits nothing
    limit  limits throttle, and stops if even zero throttle would be too fast
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from fpvcar import config
from fpvcar.devices.outlier_filter import NOISY
from fpvcar.wire import telemetry

AHEAD_DEG, BACK_DEG = 0.0, 180.0
HALF_DEG = 45.0
SAMPLES = 6
"""Number of measurements for an estimate of the closing speed: 0.15 s at 30 Hz."""
GONE = 3
"""Number of consecutive empty samples after which an obstacle is gone: one sample may fail."""
AWAY = 0.5
"""Factor for distance driven away from an obstacle, because of slip and slopes."""
CREEP = 0.2
"""Surplus of the car's speed over its throttle, in shares of full speed: throttle is spread over
the voltages above the dead band, where a motor already turns."""
FORGOTTEN_M = 2.0
"""Distance beyond which an obstacle is forgotten."""
LEAST_SHARE = 0.05
"""Smallest useful share of throttle; below it a motor would only hum."""
NO_SENSOR = (math.inf, "")
"""Free share without a sensor, and an empty name; any real sensor gives a smaller share."""


class Free(NamedTuple):
    """Share of full throttle that is allowed ahead and back; 1 is all."""

    ahead: float = 1.0
    back: float = 1.0


def covers(sensor: telemetry.Range, bearing_deg: float) -> bool:
    """Return whether the sensor covers that bearing."""
    off_deg = (sensor.bearing_deg - bearing_deg + 180.0) % 360.0 - 180.0
    return abs(off_deg) <= HALF_DEG


class Approach:
    """Closing speed of one sensor: a straight line fitted to its last ranges."""

    def __init__(self) -> None:
        self._last: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
        self._mps: float | None = 0.0

    def add(self, range_m: float | None, at_s: float) -> None:
        """Add a measurement, unless it repeats the last one."""
        if range_m is None:
            self._last.clear()
            self._mps = 0.0
        elif not self._last or at_s > self._last[-1][0]:
            self._last.append((at_s, range_m))
            self._mps = None

    def speed_mps(self) -> float:
        """Return the closing speed, >= 0; 0 with fewer than three samples."""
        if self._mps is None:  # cached: the gate reads more often than a sensor measures
            self._mps = self._slope_mps()
        return self._mps

    def _slope_mps(self) -> float:
        if len(self._last) < 3:
            return 0.0
        middle_s = sum(at_s for at_s, _ in self._last) / len(self._last)
        spread = sum((at_s - middle_s) ** 2 for at_s, _ in self._last)
        slope = sum((at_s - middle_s) * range_m for at_s, range_m in self._last)
        return max(0.0, -slope / spread)


def share(range_m: float | None, age_s: float, speed_mps: float, guard: config.Guard) -> float:
    """Return the greatest share of full throttle towards an obstacle `range_m` away."""
    if range_m is None:
        return 1.0
    reaction_s = guard.reaction_s + age_s
    room_m = range_m - guard.stop_m
    way_m = speed_mps * reaction_s + speed_mps**2 / (2.0 * guard.brake_mps2)
    if not way_m < room_m:  # NaN means no room, too
        return 0.0
    # v t + v^2 / 2a = room, for v
    lag_mps = guard.brake_mps2 * reaction_s
    most_mps = math.sqrt(lag_mps**2 + 2.0 * guard.brake_mps2 * room_m) - lag_mps
    most = most_mps / guard.top_mps
    return 0.0 if most < LEAST_SHARE else min(most, 1.0)


class ObstacleTrack:
    """Obstacle seen by one sensor; estimates its distance while the sensor sees nothing."""

    def __init__(self, settings: config.Guard) -> None:
        self._settings = settings
        self._approach = Approach()
        self._at_s = -math.inf
        self._looked_s: float | None = None
        self._gone = GONE
        self._near_m: float | None = None
        self._mps: float = 0

    def update(self, sensor: telemetry.Range, now_s: float, towards: float) -> float:
        """Return the free share of full throttle in this sensor's direction.

        `towards` is the throttle in that direction since the last call, -1 to 1.
        """
        self._move(now_s, towards)
        if sensor.state != "ok" or sensor.age_s is None or sensor.age_s > self._settings.stale_s:
            if sensor.state == NOISY and sensor.range_m is not None:
                self._near_m = sensor.range_m  # the nearest of its readings
            return min(self._settings.unseen_limit, self._remembered())
        at_s = now_s - sensor.age_s
        if at_s > self._at_s:
            self._at_s = at_s
            self._gone = self._gone + 1 if sensor.range_m is None else 0
            if sensor.range_m is not None:
                self._near_m = sensor.range_m - max(0.0, self._mps) * sensor.age_s
        if sensor.range_m is None:
            if self._gone < GONE:
                return self._remembered()
            self._near_m = None
        self._approach.add(sensor.range_m, at_s)
        speed_mps = self._approach.speed_mps()
        self._mps = max(self._mps, speed_mps)
        return share(sensor.range_m, sensor.age_s, speed_mps, self._settings)

    def _move(self, now_s: float, towards: float) -> None:
        """Move the car by its throttle; the model accelerates faster than it brakes."""
        passed_s = now_s - (self._looked_s or now_s)
        self._looked_s = now_s
        brakes_mps = self._settings.brake_mps2 * passed_s
        wished = towards + CREEP if towards > 0.0 else towards
        wished_mps = wished * self._settings.top_mps
        slowest_mps, fastest_mps = self._mps - brakes_mps, self._mps + 2 * brakes_mps
        self._mps = min(max(wished_mps, slowest_mps), fastest_mps)
        if self._near_m is not None:
            moved_m = self._mps * passed_s
            self._near_m -= max(moved_m, AWAY * moved_m)
            if self._near_m > FORGOTTEN_M:
                self._near_m = None

    def _remembered(self) -> float:
        return share(self._near_m, 0.0, self._mps, self._settings)


class Guard:
    """Computes the free throttle from ranges; time is passed in.

    `ahead_by` and `back_by` name the sensor with the smallest free share in the last `update`.
    """

    def __init__(self, settings: config.Guard) -> None:
        self.ahead_by = self.back_by = ""
        self._settings = settings
        self._tracks: dict[str, tuple[ObstacleTrack, bool, bool]] = {}

    def update(
        self, ranges: Sequence[telemetry.Range], now_s: float, throttle: float = 0.0
    ) -> Free:
        """Return the free throttle by all sensors. `throttle` is the setpoint until now."""
        ahead = back = NO_SENSOR
        for sensor in ranges:
            track, covers_ahead, covers_back = self._tracks.get(sensor.name) or self._add(sensor)
            if covers_ahead:
                ahead = min(ahead, (track.update(sensor, now_s, throttle), sensor.name))
            if covers_back:
                back = min(back, (track.update(sensor, now_s, -throttle), sensor.name))
        self.ahead_by, self.back_by = ahead[1], back[1]
        return Free(min(1.0, ahead[0]), min(1.0, back[0]))

    def _add(self, sensor: telemetry.Range) -> tuple[ObstacleTrack, bool, bool]:
        """Add a new sensor; its direction is fixed from then on."""
        track = ObstacleTrack(self._settings)
        self._tracks[sensor.name] = entry = (
            track,
            covers(sensor, AHEAD_DEG),
            covers(sensor, BACK_DEG),
        )
        return entry
