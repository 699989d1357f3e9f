"""The last word of a range sensor: what it saw, when, and what is wrong with it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from fpvcar import config, status
from fpvcar.status import NOISY
from fpvcar.threads import Worker

JUMP_M, JUMP_SHARE = 0.1, 0.2
"""More than the noise of any range sensor here; see noise.py."""
NEVER_S = -math.inf


@dataclass
class Seen:
    """The last word of one sensor."""

    name: str
    bearing_deg: float
    range_m: float | None = None
    at_s: float = NEVER_S
    state: str = "starting"
    readings: int = 0

    def note(self, range_m: float | None, state: str, now_s: float) -> None:
        """A measurement; only one that held makes it young."""
        self.state = state
        if state == "ok":
            self.range_m, self.at_s = range_m, now_s
            self.readings += 1

    def noisy(self, nearest: float | None) -> None:
        """Readings that jump: of the last ones the nearest is told, and no younger."""
        self.state, self.range_m = NOISY, nearest

    def told(self, now_s: float) -> status.Range:
        """As the page gets it; `age_s` is None before the first measurement."""
        age_s = None if self.at_s == NEVER_S else now_s - self.at_s
        return status.Range(
            self.name, self.bearing_deg, self.range_m, age_s, self.state
        )  # fmt: skip


class RangeThread(Worker):
    """All sensors of one kind."""

    def __init__(
        self, name: str, profile: config.Profile, seen: list[Seen],
        clock_s: Callable[[], float],
    ) -> None:  # fmt: skip
        super().__init__(name)
        self._profile, self._seen, self._clock_s = profile, seen, clock_s

    def lost(self) -> None:
        """Their ages go on."""
        for seen in self._seen:
            seen.state = self.state
