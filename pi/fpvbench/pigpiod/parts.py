"""Parts that react to the program's outputs: the HC-SR04 ultrasonic range sensor."""

import math
import random

from fpvbench import soc as chip
from fpvbench.pigpiod.lines import Lines

TRIGGER_MIN_US = 10
ECHO_AFTER_US = 450
SOUND_M_PER_S = 343.0
NEAREST_M, FARTHEST_M = 0.02, 4.0
NO_ECHO_US = 38_000


def echo_us(range_m: float) -> int:
    """Compute the length of the echo pulse: the time of flight there and back at 20 C."""
    if math.isnan(range_m) or range_m > FARTHEST_M:
        return NO_ECHO_US
    return round(2e6 * max(range_m, NEAREST_M) / SOUND_M_PER_S)


class HcSr04:
    """Ultrasonic sensor that answers a high pulse with an echo, set by the world's range `index`.

    `off_m` simulates a fault: each range is off by up to this distance.
    """

    def __init__(
        self, soc: chip.Soc, lines: Lines, trigger: int, echo: int, index: int, off_m: float = 0.0
    ) -> None:
        self._soc, self._lines = soc, lines
        self._off_m, self._chance = off_m, random.Random(echo)
        self._echo, self._index = echo, index
        self._rose_us: int | None = None
        self._busy_until_us = 0
        lines.listeners[trigger] = self._triggered
        lines.play(echo, [(0, 0)])

    def _triggered(self, at_us: int, level: int) -> None:
        if level:
            self._rose_us = at_us
            return
        rose_us, self._rose_us = self._rose_us, None
        if rose_us is None or at_us - rose_us < TRIGGER_MIN_US:
            return
        if at_us < self._busy_until_us:
            return
        # A single field of the world's block is stored whole, so its guard is not needed.
        range_m = float(self._soc.world.range_m[self._index])
        range_m = abs(range_m + self._chance.uniform(-self._off_m, self._off_m))
        start_us = at_us + ECHO_AFTER_US
        self._busy_until_us = start_us + echo_us(range_m)
        self._lines.play(self._echo, [(start_us, 1), (self._busy_until_us, 0)])
