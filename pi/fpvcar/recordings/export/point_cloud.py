"""Position of a range reading, as points for viewers. Pure."""

import functools
import math

from fpvcar.recordings.mcap.cloud import Point
from fpvcar.recordings.messages import Points, Reading

ORIGIN: Point = (0.0, 0.0, 0.0)
BEAM_DEG, BEAM_POINTS = 25.0, 5
"""Width of the drawn arc and its number of points.

The field of view of a VL53L0X is a cone of 25 degrees (data sheet, table 1: field of view); most
other sensors have a similar one.
"""


def points_of(time_ns: int, reading: Reading, at: Point = ORIGIN) -> Points:
    """Return an arc of points for a reading, as the position within the cone is unknown.

    `at` is the position of the sensor on the car.
    """
    range_m = reading.range_m
    if range_m is None:
        return Points(time_ns, ())
    arc = _arc(reading.bearing_deg)
    return Points(time_ns, tuple((at[0] + range_m * x, at[1] + range_m * y, at[2]) for x, y in arc))


@functools.lru_cache(maxsize=64)
def _arc(bearing_deg: float) -> tuple[tuple[float, float], ...]:
    """Return the arc at 1 m: x ahead, y to the left."""
    step_deg = BEAM_DEG / (BEAM_POINTS - 1)
    first_deg = bearing_deg - BEAM_DEG / 2.0
    angles = [math.radians(first_deg + n * step_deg) for n in range(BEAM_POINTS)]
    return tuple((math.cos(angle), math.sin(angle)) for angle in angles)
