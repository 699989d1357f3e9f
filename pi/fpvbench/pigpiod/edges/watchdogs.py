"""Watchdogs: they fire, repeatedly, when a pin has not changed for their time-out."""

from collections.abc import Sequence

from fpvbench.pigpiod.edges.notify import Sample
from fpvbench.pigpiod.lines import USER_GPIO
from fpvbench.pigpiod.protocol import Err, Request

TIMEOUT_MAX_MS = 60_000


class Watchdogs:
    """Watchdogs of all pins, with their command."""

    def __init__(self) -> None:
        self._timers: dict[int, tuple[int, int]] = {}
        """GPIO -> its time-out and its start time, in microseconds."""

    def wdog(self, request: Request, now_us: int) -> int:
        if request.p1 >= USER_GPIO:
            return Err.BAD_USER_GPIO
        if request.p2 > TIMEOUT_MAX_MS:
            return Err.BAD_WDOG_TIMEOUT
        self.set(request.p1, request.p2, now_us)
        return 0

    def set(self, gpio: int, timeout_ms: int, now_us: int) -> None:
        """Set and restart a watchdog; 0 ms switches it off."""
        self._timers.pop(gpio, None)
        if timeout_ms:
            self._timers[gpio] = (timeout_ms * 1000, now_us)

    def restart(self, start_levels: int, samples: Sequence[Sample], monitored: int) -> None:
        """Restart the watchdogs of watched pins that have changed."""
        for gpio, (timeout_us, since_us) in self._timers.items():
            last_levels = start_levels
            for time_us, levels in samples:
                if (levels ^ last_levels) >> gpio & 1 and monitored >> gpio & 1:
                    since_us = time_us
                last_levels = levels
            self._timers[gpio] = (timeout_us, since_us)

    def next_us(self) -> int | None:
        """Return the time at which the next watchdog fires if no pin changes, or None without a
        watchdog."""
        return min((sum(timer) for timer in self._timers.values()), default=None)

    def fired(self, now_us: int) -> int:
        """Return a bit for each watchdog that has fired, and restart it."""
        bits = 0
        for gpio, (timeout_us, since_us) in self._timers.items():
            if now_us - since_us >= timeout_us:
                bits |= 1 << gpio
                self._timers[gpio] = (timeout_us, now_us)
        return bits
