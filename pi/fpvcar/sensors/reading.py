"""Last reading of a range sensor: range, time, and fault."""

import math
from collections import deque
from dataclasses import dataclass, field

from fpvcar import config
from fpvcar.devices.outlier_filter import NOISY
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import STARTING, State
from fpvcar.runtime.workers import Worker
from fpvcar.wire import telemetry

JUMP_M, JUMP_SHARE = 0.1, 0.2
"""Jump of a range, in metres and as a share, beyond which it counts as noise: see
devices/outlier_filter.py."""
NEVER_S = -math.inf
UNREAD_MOST = 32
"""Limit of measurements queued for the recorder: a second of the fastest sensor."""


@dataclass
class LastReading:
    """Last reading of one range sensor, and the number of readings."""

    name: str
    bearing_deg: float
    range_m: float | None = None
    at_s: float = NEVER_S
    state: State = STARTING
    readings: int = 0
    offset_m: float = 0.0
    """Correction in m, added to each range."""
    unread: deque[telemetry.Measured] = field(default_factory=lambda: deque(maxlen=UNREAD_MOST))
    """Measurements queued for the recorder; the oldest are dropped first."""

    def update(self, range_m: float | None, state: State, now_s: float) -> None:
        """Store a measurement; only an "ok" one sets the range and its age."""
        self.state = state
        if state == "ok":
            self.range_m = None if range_m is None else max(0.0, range_m + self.offset_m)
            self.at_s = now_s
            self.readings += 1
            self.unread.append(telemetry.Measured(self.name, self.bearing_deg, self.range_m, now_s))

    def noisy(self, nearest: float | None) -> None:
        """Keep the nearest of readings that jump; the age continues to grow."""
        self.state = NOISY
        self.range_m = None if nearest is None else max(0.0, nearest + self.offset_m)

    def status(self, now_s: float) -> telemetry.Range:
        """Return range and age; `age_s` is None before the first measurement."""
        age_s = None if self.at_s == NEVER_S else now_s - self.at_s
        return telemetry.Range(self.name, self.bearing_deg, self.range_m, age_s, self.state)


class RangeThread(Worker):
    """Thread that reads all sensors of one kind."""

    def __init__(
        self, name: str, profile: config.Profile, readings: list[LastReading], clock_s: Clock
    ) -> None:
        super().__init__(name)
        self._profile, self._readings, self._clock_s = profile, readings, clock_s

    def lost(self) -> None:
        """Set the thread's fault as the state of every sensor; the ages continue to grow."""
        for reading in self._readings:
            reading.state = self.state
