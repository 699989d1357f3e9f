"""Is a sensor noisy: do its readings jump to and fro as nothing in the world? Pure.

    r0 --- r1 --- r2     r1 jumps when it is far off the middle of its neighbours

Whatever moves steadily stays on the line. An edge that is passed makes two jumps, one
wrong reading three; a loose wire, a wet lens or a neighbour's echoes make most of them.
"""

from collections import deque

NOISY = "noisy: its readings jump to and fro"
"""State of a sensor whose readings this filter rejects."""
LAST, MOST, CALM = 10, 7, 2
"""With MOST jumps among the LAST readings it is noisy, until there are at most CALM."""


class NoiseFilter:
    """Tells readings that jump to and fro from one sensor's good ones."""

    def __init__(self, least: float, share: float = 0.0) -> None:
        """A jump is more than `least`, and than `share` of the reading."""
        self._least, self._share = least, share
        self._values: deque[float] = deque(maxlen=LAST)
        self._jumped: deque[bool] = deque(maxlen=LAST)
        self._noisy = False

    def add(self, value: float | None) -> bool:
        """Is it noisy, with this reading? None (no target) is no jump."""
        self._jumped.append(value is not None and self._jumps(value))
        count = sum(self._jumped)
        self._noisy = count > CALM if self._noisy else count >= MOST
        return self._noisy

    @property
    def nearest(self) -> float | None:
        """The least of the last readings, None without any."""
        return min(self._values, default=None)

    def _jumps(self, value: float) -> bool:
        self._values.append(value)
        if len(self._values) < 3:
            return False
        before, middle, after = list(self._values)[-3:]
        off = abs(middle - (before + after) / 2.0)
        return off > max(self._least, self._share * middle)
