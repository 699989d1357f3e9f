"""Share of a connection's packets that is retransmitted. Pure; times in seconds.

The kernel retransmits packets that it considers lost. Few of these were only late, and lost
acknowledgements hardly count, so the share is close to the loss on the way to the page.
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

    def sample(self, now_s: float, sent: int, resent: int) -> None:
        """Process the counts of packets sent and retransmitted so far."""
        self.due_s = now_s + EVERY_S
        self._samples.append((sent, resent))
        first_sent, first_resent = self._samples[0]
        packets = sent - first_sent
        lost = (resent - first_resent) / max(1, packets)
        self.share = min(1.0, lost) if packets >= PACKETS_LEAST else None

    @property
    def recent(self) -> float:
        """Share of the last RECENT_S seconds, even of few packets."""
        newest = list(self._samples)[-RECENT_S - 1 :]
        if len(newest) < 2:
            return 0.0
        (sent, resent), (last_sent, last_resent) = newest[0], newest[-1]
        return min(1.0, (last_resent - resent) / max(1, last_sent - sent))
