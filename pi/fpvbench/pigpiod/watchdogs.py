"""Watchdogs: they fire when a pin does not change for so long, again and again."""

from collections.abc import Sequence

from fpvbench.pigpiod.lines import USER_GPIO
from fpvbench.pigpiod.notify import Sample
from fpvbench.pigpiod.protocol import Err, Request

TIMEOUT_MAX_MS = 60_000


class Watchdogs:
    """Keeps the watchdogs of all pins."""

    def __init__(self) -> None:
        self._timers: dict[int, tuple[int, int]] = {}
        """GPIO -> its time-out and since when it runs, in microseconds."""

    def wdog(self, request: Request, now_us: int) -> int:
        """Answers WDOG."""
        if request.p1 >= USER_GPIO:
            return Err.BAD_USER_GPIO
        if request.p2 > TIMEOUT_MAX_MS:
            return Err.BAD_WDOG_TIMEOUT
        self.set(request.p1, request.p2, now_us)
        return 0

    def set(self, gpio: int, timeout_ms: int, now_us: int) -> None:
        """Sets a watchdog, which begins anew; 0 ms switches it off."""
        self._timers.pop(gpio, None)
        if timeout_ms:
            self._timers[gpio] = (timeout_ms * 1000, now_us)

    def restart(self, before: int, samples: Sequence[Sample], monitored: int) -> None:
        """Restarts the watchdogs of pins that are watched and have changed."""
        for gpio, (timeout_us, since_us) in self._timers.items():
            last = before
            for time_us, levels in samples:
                if (levels ^ last) >> gpio & 1 and monitored >> gpio & 1:
                    since_us = time_us
                last = levels
            self._timers[gpio] = (timeout_us, since_us)

    def next_us(self) -> int | None:
        """Tells when the next one fires if no pin changes; None: none is set."""
        return min((sum(timer) for timer in self._timers.values()), default=None)

    def fired(self, now_us: int) -> int:
        """Returns a bit for each watchdog that has fired; it runs again."""
        bits = 0
        for gpio, (timeout_us, since_us) in self._timers.items():
            if now_us - since_us >= timeout_us:
                bits |= 1 << gpio
                self._timers[gpio] = (timeout_us, now_us)
        return bits
