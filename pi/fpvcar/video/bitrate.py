"""What a link carries, and which bitrate that allows. Pure; times in seconds.

kernel's counters -> LinkMeter -> room for another unit?   (every viewer)
                     LinkReport -> Bitrate -> camera       (the driver's link)
"""

from collections import deque
from typing import NamedTuple

from msgspec import Struct

LEAST_BITRATE = 150_000
QUEUE_S = 0.05
"""How much a unit may find in front of it on the link, beyond the round trip."""
QUEUE_LEAST_BYTES = 8000
WINDOW_S = 0.1
MEMORY = 10
"""Windows that are remembered: 1 s."""
SEGMENT_BYTES = 1448
READ_EVERY_S = 0.005
"""The meter is read no more often; times are rounded up by as much."""

SETTLED_TRIPS = 5
"""Round trips until a new link is judged: its rate is still being found out."""

SHARE_DOWN, SHARE_UP = 0.8, 0.7
"""Bitrate / what the link carries: key frames and commands need the rest. Going up
leaves more: at 0.8 a key frame after a drop would make the next drop."""
BLOCKED_S = 0.15
"""A link that takes nothing for so long, while a unit waits, is too slow."""
SETTLE_S = 0.4
"""Between two changes: a new encoder, a key frame, and the queue's drain."""
HOLD_S, HOLD_MOST_S = 0.5, 1.5
"""Pause after a decrease; it doubles while increases fail at once."""
FAILED_S = 1.5
STEP_MOST, STEP_LEAST, STEP_BLIND = 3.0, 1.2, 1.25
BLIND_S = 8.0
"""After so long without a change one small step is tried without evidence."""


class LinkReport(NamedTuple):
    """What a link did lately. Rates in bit/s.

    `delivered` was acknowledged over the last window; `burst` is the rate at
    which the largest unit of the last second was acknowledged: what the link can
    carry, even while it is mostly idle. `blocked_s`: since when units have waited for
    room. `dropped`: units since the last report. `copies`: how often each unit goes.
    """

    delivered: float
    burst: float
    blocked_s: float
    dropped: int
    copies: int = 1


class _Train(Struct):
    """A unit on its way: bytes `begin` to `end` of the connection.

    `start_s`: before this its first byte was not acknowledged.
    """

    start_s: float
    begin: int
    end: int


_Burst = tuple[int, float]
"""Bytes of a unit, and how fast it went, in bytes/s. The largest tells most, and sorts
last."""
_NO_BURST: _Burst = (0, 0.0)


class LinkMeter:
    """Measures a TCP connection by the kernel's counters."""

    def __init__(self, now_s: float, acked: int) -> None:
        self.progress_s = self._since_s = now_s
        self.rtt_s = 0.0
        self.recent = self.rate = 0.0
        """Delivered bytes/s: in the last window, in the best one of the last second."""
        self._acked = acked
        self._mark = (now_s, acked)
        self._train: _Train | None = None
        self._best = _NO_BURST
        self._windows: deque[tuple[float, _Burst]] = deque(maxlen=MEMORY)

    def sample(self, now_s: float, acked: int, unacked: int, rtt_s: float) -> None:
        """Takes bytes acknowledged so far and outstanding, and the least round trip."""
        self.rtt_s = rtt_s
        if acked > self._acked or not unacked:
            self.progress_s = now_s
        self._acked = acked
        if self._train is not None and self._has_passed(now_s, self._train):
            self._train = None
        mark_s, mark = self._mark
        if now_s - mark_s >= WINDOW_S:
            self.recent = (acked - mark) / (now_s - mark_s)
            self._windows.append((self.recent, self._best))
            self.rate = max(rate for rate, _ in self._windows)
            self._mark, self._best = (now_s, acked), _NO_BURST

    def _has_passed(self, now_s: float, train: _Train) -> bool:
        """Measures how fast a unit's bytes are acknowledged, one after the other.

        Without its last segment, whose acknowledgement the peer may delay by 40 ms,
        and without the first, which an idle link may pass on at any speed.
        """
        if self._acked <= train.begin:
            train.start_s = max(train.start_s, now_s)
            return False
        if self._acked < train.end - SEGMENT_BYTES:
            return False
        gone = min(self._acked, train.end) - train.begin - SEGMENT_BYTES
        took_s = now_s - train.start_s + READ_EVERY_S
        self._best = max(self._best, (gone, gone / took_s))
        return True

    def sent(self, now_s: float, unacked: int, size: int) -> None:
        """Notes a unit that goes off behind `unacked` bytes. Large ones tell more."""
        begin, old = self._acked + unacked, self._train
        if old is None or size > 2 * (old.end - old.begin):
            self._train = _Train(now_s + self.rtt_s, begin, begin + size)

    def settled(self, now_s: float) -> bool:
        """Is the link known well enough to judge it by?"""
        return bool(self._windows) and now_s - self._since_s >= SETTLED_TRIPS * self.rtt_s

    @property
    def limit_bytes(self) -> float:
        """How many unacknowledged bytes leave room for another unit."""
        return max(QUEUE_LEAST_BYTES, self.rate * (self.rtt_s + QUEUE_S))

    def report(self, blocked_s: float, dropped: int) -> LinkReport:
        """The link's report of now."""
        burst = max((best for _, best in self._windows), default=_NO_BURST)
        return LinkReport(8 * self.recent, 8 * burst[1], blocked_s, dropped)


class Bitrate:
    """Which bitrate to ask the camera for, LEAST_BITRATE .. `most`, in bit/s.

    Down at once to what the link delivers; up in steps as far as its bursts show
    room: from the least to the most in under 3 s after a link recovers. Units that go
    twice are half as large: a link that loses packets is not loaded with more of them.
    """

    def __init__(self, most: int, least: int = LEAST_BITRATE) -> None:
        self.most, self.least = most, min(least, most)
        self.wanted = self._top = most
        self._changed_s = self._raised_s = self._trouble_s = float("-inf")
        self._hold_s = HOLD_S

    @property
    def at_most(self) -> bool:
        """It cannot go up: what a link's bursts show does not matter."""
        return self.wanted == self._top

    def full(self) -> int | None:
        """Nobody's link counts: the most; None if that is asked for already."""
        self._top = self.most
        return self._set(self._top)

    def update(self, now_s: float, link: LinkReport) -> int | None:
        """The bitrate to ask for now; None where it stays."""
        self._top = max(self.least, self.most // link.copies)
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
        if bitrate == self.wanted:
            return None
        self.wanted = bitrate
        if now_s is not None:
            self._changed_s = now_s
        return bitrate
