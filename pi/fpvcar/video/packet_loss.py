"""Which share of a connection's packets has to be sent again. Pure; times in seconds.

The kernel sends a packet again when it takes it for lost. A few of these only came
late, and lost acknowledgements hardly count: so this is near the share that is lost on
the way to the page.
"""

from collections import deque

EVERY_S = 1.0
SAMPLES = 6
"""One a second: the share is of the last five."""
RECENT_S = 3
PACKETS_LEAST = 50
"""Of fewer packets no share is told: one lost of ten says nothing."""


class LossMeter:
    """Takes the kernel's counts once a second. `share` is 0 to 1; None: too few."""

    def __init__(self) -> None:
        self.share: float | None = None
        self.due_s = float("-inf")
        self._samples: deque[tuple[int, int]] = deque(maxlen=SAMPLES)

    def sample(self, now_s: float, sent: int, again: int) -> None:
        """Packets sent so far, and how many of these were sent again."""
        self.due_s = now_s + EVERY_S
        self._samples.append((sent, again))
        first_sent, first_again = self._samples[0]
        packets = sent - first_sent
        lost = (again - first_again) / max(1, packets)
        self.share = min(1.0, lost) if packets >= PACKETS_LEAST else None

    @property
    def recent(self) -> float:
        """The share of the last RECENT_S seconds, of however few packets."""
        newest = list(self._samples)[-RECENT_S - 1 :]
        if len(newest) < 2:
            return 0.0
        (sent, again), (last_sent, last_again) = newest[0], newest[-1]
        return min(1.0, (last_again - again) / max(1, last_sent - sent))
