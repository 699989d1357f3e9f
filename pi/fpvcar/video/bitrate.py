"""Capacity of a link, and the bitrate that it allows. Pure; times in seconds.

kernel's counters -> LinkMeter -> room for another unit?   (every viewer)
                     LinkReport -> Bitrate -> camera       (the driver's link)
"""

from collections import deque
from typing import NamedTuple

from msgspec import Struct

LEAST_BITRATE = 150_000
QUEUE_S = 0.05
"""Queueing time allowed in front of a unit on the link, in addition to the round trip."""
QUEUE_LEAST_BYTES = 8000
FAR_S, FAR_SHARE = 0.06, 2.0
"""Least round trip of a far link, and its room as a multiple of that of a near one, unless a queue
stands on it.

The delivered rate is that of a round trip ago, and one lost packet holds the acknowledgement of all
later bytes for a round trip more. A near link's room would be used up by then.
"""
WINDOW_S = 0.1
MEMORY = 10
"""Number of windows kept: 1 s."""
SEGMENT_BYTES = 1448
READ_EVERY_S = 0.005
"""Minimum interval between readings of the meter; times are rounded up by as much."""

SETTLED_TRIPS = 5
"""Round trips before a new link is evaluated: its rate is still being determined."""

SHARE_DOWN, SHARE_UP = 0.8, 0.7
"""Bitrate as a share of the link's capacity: key frames and commands need the rest. An increase
leaves a larger margin: at 0.8 a key frame after a drop would cause the next drop."""
BLOCKED_S = 0.15
"""Time without room for a queued unit after which the link is too slow."""
SETTLE_S = 0.4
"""Time between two changes, for a new encoder, a key frame, and the queue's drain."""
HOLD_S, HOLD_MOST_S = 0.5, 1.5
"""Pause after a decrease; it doubles while increases fail at once."""
FAILED_S = 1.5
YIELD_S, YIELD_MOST_S = 2.0, 20.0
"""Shortest and longest pause of a page's small picture for its large one."""
STEP_MOST, STEP_LEAST, STEP_BLIND = 3.0, 1.2, 1.25
BLIND_S = 8.0
"""Time without a change after which one small step up is tried without evidence."""


class LinkReport(NamedTuple):
    """Recent figures of a link. Rates in bit/s.

    `delivered` is the acknowledged rate of the last window. `burst` is the rate of acknowledgement
    of the largest unit of the last second: the capacity of the link, even while it is mostly idle.
    `blocked_s` is the time for which units have waited for room. `dropped` counts units since the
    last report. `divisor` is the number of times each unit is sent, or more for a small picture.
    """

    delivered: float
    burst: float
    blocked_s: float
    dropped: int
    divisor: int = 1


class _Train(Struct):
    """Unit in transit: bytes `begin` to `end` of the connection.

    `start_s`: before this time its first byte was not acknowledged.
    """

    start_s: float
    begin: int
    end: int


_Burst = tuple[int, float]
"""Bytes of a unit, and its speed in bytes/s. The largest unit is the best measurement, and sorts
last."""
_NO_BURST: _Burst = (0, 0.0)


class LinkMeter:
    """Meter of a TCP connection, based on the kernel's counters."""

    def __init__(self, now_s: float, acked: int) -> None:
        self.progress_s = self._since_s = now_s
        self.rtt_s = self._queue_s = 0.0
        self.recent = self.rate = 0.0
        """Delivered bytes/s: in the last window, and in the best one of the last second."""
        self._acked = acked
        self._mark = (now_s, acked)
        self._train: _Train | None = None
        self._best = _NO_BURST
        self._windows: deque[tuple[float, _Burst]] = deque(maxlen=MEMORY)

    def sample(
        self, now_s: float, acked: int, unacked: int, rtt_s: float, queue_s: float = 0.0
    ) -> None:
        """Process the counts of acknowledged and outstanding bytes, the least round trip, and the
        excess of the current one."""
        self.rtt_s, self._queue_s = rtt_s, queue_s
        if acked > self._acked or not unacked:
            self.progress_s = now_s
        self._acked = acked
        if self._train is not None and self._has_passed(now_s, self._train):
            self._train = None
        mark_s, mark = self._mark
        if now_s - mark_s >= WINDOW_S:
            self.recent = (acked - mark) / (now_s - mark_s)
            self._windows.append((self.recent, self._best))
            self.rate, _ = max(self._windows)
            self._mark, self._best = (now_s, acked), _NO_BURST

    def _has_passed(self, now_s: float, train: _Train) -> bool:
        """Measure the rate at which a unit's bytes are acknowledged.

        The last segment is left out, because the peer may delay its acknowledgement by 40 ms. So is
        the first, because an idle link may pass it on at any speed.
        """
        if self._acked <= train.begin:
            train.start_s = max(train.start_s, now_s)
            return False
        if self._acked < train.end - SEGMENT_BYTES:
            return False
        passed = min(self._acked, train.end) - train.begin - SEGMENT_BYTES
        took_s = now_s - train.start_s + READ_EVERY_S
        self._best = max(self._best, (passed, passed / took_s))
        return True

    def sent(self, now_s: float, unacked: int, size: int) -> None:
        """Record a unit sent behind `unacked` bytes. Larger units give better measurements."""
        begin, train = self._acked + unacked, self._train
        if train is None or size > 2 * (train.end - train.begin):
            self._train = _Train(now_s + self.rtt_s, begin, begin + size)

    def settled(self, now_s: float) -> bool:
        """Return whether the link has been measured for long enough to evaluate it."""
        return bool(self._windows) and now_s - self._since_s >= SETTLED_TRIPS * self.rtt_s

    @property
    def limit_bytes(self) -> float:
        """Number of unacknowledged bytes that leaves room for another unit."""
        share = FAR_SHARE if self.far and self._queue_s < QUEUE_S / 2 else 1.0
        return max(QUEUE_LEAST_BYTES, share * self.rate * (self.rtt_s + QUEUE_S))

    @property
    def far(self) -> bool:
        """Whether the round trip is long compared with the time between pictures."""
        return self.rtt_s >= FAR_S

    def report(self, blocked_s: float, dropped: int) -> LinkReport:
        """Return the current report of the link."""
        burst = max((best for _, best in self._windows), default=_NO_BURST)
        return LinkReport(8 * self.recent, 8 * burst[1], blocked_s, dropped)


class Precedence:
    """Pauses the small picture of a page while the link has no room for both.

    A pause that follows soon after another one is twice as long, so that trying again seldom costs
    the large picture a unit.
    """

    def __init__(self) -> None:
        self._until_s, self._pause_s = float("-inf"), YIELD_S

    def yields(self, now_s: float, strained: bool) -> bool:
        """Return whether the small picture pauses; `strained`: the large one lacks room now."""
        if strained and now_s >= self._until_s:
            soon = now_s < self._until_s + self._pause_s
            self._pause_s = min(2 * self._pause_s, YIELD_MOST_S) if soon else YIELD_S
            self._until_s = now_s + self._pause_s
        return now_s < self._until_s


class Bitrate:
    """Controller of the camera's bitrate, LEAST_BITRATE .. `most`, in bit/s.

    It drops at once to the delivered rate, and rises in steps as far as the link's bursts show
    room: from the least to the most in under 3 s after a link recovers. Units sent twice are half
    as large, so that a link that loses packets is not loaded with more of them.
    """

    def __init__(self, most: int, least: int = LEAST_BITRATE) -> None:
        self.most, self.least = most, min(least, most)
        self.wanted = self._top = most
        self.lowered = False
        """Whether the link is too slow for the maximum."""
        self._changed_s = self._raised_s = self._trouble_s = float("-inf")
        self._hold_s = HOLD_S

    @property
    def at_most(self) -> bool:
        """Whether the bitrate cannot rise; the link's bursts are then irrelevant."""
        return self.wanted == self._top

    def full(self) -> int | None:
        """Return the maximum, used without a driver's link; None if it is set already."""
        self._top = self.most
        return self._set(self._top)

    def update(self, now_s: float, link: LinkReport) -> int | None:
        """Return the new bitrate; None for no change."""
        self._top = max(self.least, self.most // link.divisor)
        if self.wanted > self._top:
            return self._set(self._top, now_s)
        settled = now_s - self._changed_s >= SETTLE_S
        if link.dropped or link.blocked_s >= BLOCKED_S:
            self._trouble_s = now_s
            return self._down(now_s, link) if settled else None
        calm = now_s - self._trouble_s >= self._hold_s
        return self._up(now_s, link) if settled and calm else None

    def _down(self, now_s: float, link: LinkReport) -> int | None:
        failed = now_s - self._raised_s < FAILED_S
        self._hold_s = min(HOLD_MOST_S, 2 * self._hold_s) if failed else HOLD_S
        target = SHARE_DOWN * min(link.delivered, self.wanted)
        self.lowered = True
        return self._set(max(self.least, int(target)), now_s)

    def _up(self, now_s: float, link: LinkReport) -> int | None:
        step = min(STEP_MOST, SHARE_UP * link.burst / self.wanted)
        if step < STEP_LEAST and now_s - self._changed_s >= BLIND_S:
            step = STEP_BLIND
        target = min(self._top, int(step * self.wanted))
        if target < self._top and step < STEP_LEAST:
            return None
        self._raised_s = now_s
        return self._set(target, now_s)

    def _set(self, bitrate: int, now_s: float | None = None) -> int | None:
        self.lowered = self.lowered and bitrate < self._top
        if bitrate == self.wanted:
            return None
        self.wanted = bitrate
        if now_s is not None:
            self._changed_s = now_s
        return bitrate
