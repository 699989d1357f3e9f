"""Where a reading of a range sensor was, as points that viewers draw. Pure."""

import functools
import math

from fpvcar.mcap.cloud import Point
from fpvcar.recordings.messages import Points, Reading

ORIGIN: Point = (0.0, 0.0, 0.0)
BEAM_DEG, BEAM_POINTS = 25.0, 5
"""A VL53L0X looks at a cone of 25 degrees (data sheet, table 1: field of view); most
others' are not far from it. Its arc is drawn as so many points."""


def points_of(time_ns: int, reading: Reading, at: Point = ORIGIN) -> Points:
    """Make an arc of points of a reading, as its place in the cone is not known. `at`
    is where the sensor is on the car."""
    range_m = reading.range_m
    if range_m is None:
        return Points(time_ns, ())
    arc = _arc(reading.bearing_deg)
    return Points(time_ns, tuple((at[0] + range_m * x, at[1] + range_m * y, at[2]) for x, y in arc))


@functools.lru_cache(maxsize=64)
def _arc(bearing_deg: float) -> tuple[tuple[float, float], ...]:
    """The arc at 1 m: x ahead, y to the left."""
    step_deg = BEAM_DEG / (BEAM_POINTS - 1)
    first_deg = bearing_deg - BEAM_DEG / 2.0
    angles = [math.radians(first_deg + n * step_deg) for n in range(BEAM_POINTS)]
    return tuple((math.cos(one), math.sin(one)) for one in angles)
