"""Transfer rate in bytes per second, over the last seconds."""

from collections import deque

WINDOW_S = 10.0


class Rate:
    """Rate of a growing count. Time is an argument."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def add(self, count: int, now_s: float) -> float:
        """Add the count so far; return the rate per second, 0 before the second sample."""
        self._samples.append((now_s, count))
        while len(self._samples) > 2 and self._samples[1][0] <= now_s - WINDOW_S:
            self._samples.popleft()
        first_s, first = self._samples[0]
        return (count - first) / (now_s - first_s) if now_s > first_s else 0.0
