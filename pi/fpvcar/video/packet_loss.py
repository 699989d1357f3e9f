"""Share of a connection's packets that is lost. Pure; times in seconds.

The kernel retransmits packets that it considers lost. Those that were only late are subtracted when
the peer reports their second copies as duplicates: a round trip later, so a count may fall.
"""

from collections import deque

EVERY_S = 1.0
SAMPLES = 6
"""Number of samples, one a second: the share covers the last five."""
RECENT_S = 3
PACKETS_LEAST = 50
"""Least number of packets for a share: one lost of ten would mean little."""


class LossMeter:
    """Meter of the kernel's counts, once a second. `share` is 0 to 1; None for too few packets."""

    def __init__(self) -> None:
        self.share: float | None = None
        self.due_s = float("-inf")
        self._samples: deque[tuple[int, int]] = deque(maxlen=SAMPLES)

    def sample(self, now_s: float, sent: int, lost: int) -> None:
        """Process the counts of packets sent and lost so far."""
        self.due_s = now_s + EVERY_S
        self._samples.append((sent, lost))
        first = self._samples[0]
        self.share = _share(first, (sent, lost)) if sent - first[0] >= PACKETS_LEAST else None

    @property
    def recent(self) -> float:
        """Share of the last RECENT_S seconds, even of few packets."""
        newest = list(self._samples)[-RECENT_S - 1 :]
        if len(newest) < 2:
            return 0.0
        return _share(newest[0], newest[-1])


def _share(first: tuple[int, int], last: tuple[int, int]) -> float:
    """Return the lost packets per packet sent between two samples."""
    return min(1.0, max(0, last[1] - first[1]) / max(1, last[0] - first[0]))
