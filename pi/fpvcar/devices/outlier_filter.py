"""Filter for noisy sensors: readings that jump to and fro unlike any real object. Pure.

    r0 --- r1 --- r2     r1 jumps when it is far off the middle of its neighbours

Steady motion stays on the line. A passed edge gives two jumps, one wrong reading three. A loose
wire, a wet lens or a neighbour's echoes turn most readings into jumps.
"""

from collections import deque

from fpvcar.runtime.texts import Text

NOISY = Text("noisy", "noisy: its readings jump back and forth")
"""State of a sensor with readings that this filter rejects."""
LAST, MOST, CALM = 10, 7, 2
"""Thresholds: noisy from MOST jumps among the LAST readings, until there are at most CALM."""


class NoiseFilter:
    """Detector of a sensor with readings that jump to and fro."""

    def __init__(self, least: float, share: float = 0.0) -> None:
        """Create a filter; a jump exceeds both `least` and `share` of the reading."""
        self._least, self._share = least, share
        self._values: deque[float] = deque(maxlen=LAST)
        self._jumped: deque[bool] = deque(maxlen=LAST)
        self._noisy = False

    def add(self, value: float | None) -> bool:
        """Add a reading; return whether the sensor is noisy. None (no target) is no jump."""
        self._jumped.append(value is not None and self._jumps(value))
        count = sum(self._jumped)
        self._noisy = count > CALM if self._noisy else count >= MOST
        return self._noisy

    @property
    def nearest(self) -> float | None:
        """Least of the last readings, None without any."""
        return min(self._values, default=None)

    def _jumps(self, value: float) -> bool:
        self._values.append(value)
        if len(self._values) < 3:
            return False
        before, middle, after = list(self._values)[-3:]
        off = abs(middle - (before + after) / 2.0)
        return off > max(self._least, self._share * middle)
