"""Levels of GPIO 0-31 over time: what a logic analyser on the chip's pins records.

Sources: the registers in the bench's chip file (written here and, for inputs, by
others), the waves that DMA or the PWM hardware puts out, and what a test or a part
plays. Nothing is recorded while no pin is monitored.
"""

import ctypes
import heapq
from collections.abc import Callable, Iterable
from operator import itemgetter

from fpvcar.bench import soc as chip
from fpvcar.bench.pigpiod.pwm import Wave, sampled

USER_GPIO = 32
ALL = 0xFFFFFFFF
BUFFER_US = 120_000
"""How much DMA records (pigpiod's option -b): a daemon that stalls longer loses it."""
Edge = tuple[int, int, int]
"""(sample time in microseconds, GPIO, level)."""


class Lines:
    """Bank 1 of the chip, watched."""

    def __init__(self, soc: chip.Soc) -> None:
        self._pins = soc.pin
        start, size = chip.Soc.pin.offset, USER_GPIO * ctypes.sizeof(chip.Pin)
        self._registers = memoryview(soc).cast("B")[start : start + size]
        self._snapshot = b""
        self.waves: dict[int, Wave] = {}
        self._drawn_us: dict[int, int] = {}
        self._driven: dict[int, int] = {}
        self._future: list[tuple[int, int, int, int]] = []
        self._played = 0
        self._edges: list[Edge] = []
        self._word = 0
        self.monitored = 0
        self.listeners: dict[int, Callable[[int, int], None]] = {}
        """Called with (time, level) when the program changes an output."""

    def level(self, gpio: int, now_us: int) -> int:
        """The pin's level now (bank 2 too)."""
        self._play_until(now_us)
        pin = self._pins[gpio]
        wave = self.waves.get(gpio)
        if wave and pin.mode == wave.mode:
            return wave.level(now_us)
        if pin.mode != chip.MODE_OUTPUT and pin.external == chip.FLOATING:
            driven = self._driven.get(gpio)
            if driven is not None:
                return driven
        return int(pin.level())

    def word(self, now_us: int) -> int:
        """Levels of GPIO 0-31 now."""
        levels = [self.level(gpio, now_us) << gpio for gpio in range(USER_GPIO)]
        return sum(levels)

    def play(self, gpio: int, edges: Iterable[tuple[int, int]]) -> None:
        """The outside world drives an input: (microseconds, level), also in future.

        The chip file's `external`, where it is not FLOATING, overrides this.
        """
        for time_us, level in edges:
            self._played += 1
            heapq.heappush(self._future, (time_us, self._played, gpio, level))

    def next_played_us(self) -> int | None:
        """When the next played edge is due."""
        return self._future[0][0] if self._future else None

    def changed(self, gpio: int, now_us: int) -> None:
        """Records the level after a register or wave of the pin was changed."""
        if gpio < USER_GPIO:
            self._note(gpio, now_us, self.level(gpio, now_us))

    def pulse(self, gpio: int, start_us: int, length_us: int, level: int) -> None:
        """Records a pulse that the program puts on an output."""
        self._note(gpio, start_us, level)
        self._note(gpio, start_us + length_us, 1 - level)

    def set_wave(self, gpio: int, wave: Wave | None, now_us: int) -> None:
        """Another wave on the pin, or none; the old one is recorded up to now."""
        self._draw(gpio, now_us)
        if wave is None:
            self.waves.pop(gpio, None)
        else:
            self.waves[gpio] = wave
        self._drawn_us[gpio] = now_us

    def monitor(self, bits: int, now_us: int) -> None:
        """Which pins are watched from now on; levels that they have are no edges."""
        new = bits & ~self.monitored
        if not self.monitored and bits:
            new = ALL
            self._snapshot = bytes(self._registers)
        for gpio in range(USER_GPIO):
            if new >> gpio & 1:
                self._set_bit(gpio, self.level(gpio, now_us))
                self._drawn_us[gpio] = now_us
        self.monitored = bits
        if not bits:
            self._edges.clear()

    def show(self, edge_us: int, word: int) -> int:
        """The word with the levels that unwatched waves have at that time."""
        for gpio, wave in self.waves.items():
            unwatched = not self.monitored >> gpio & 1
            if unwatched and self._pins[gpio].mode == wave.mode:
                level = wave.level(max(edge_us, wave.start_us))
                word = word & ~(1 << gpio) | level << gpio
        return word

    @property
    def recorded(self) -> int:
        """The word after everything that was recorded."""
        return self._word

    def take(self, until_us: int) -> list[Edge]:
        """The edges up to a time, in order; each is given once."""
        self._play_until(until_us)
        for gpio in self.waves:
            self._draw(gpio, until_us)
        snapshot = bytes(self._registers)
        if snapshot != self._snapshot:
            self._snapshot = snapshot
            for gpio in range(USER_GPIO):
                wave = self.waves.get(gpio)
                if wave is None or self._pins[gpio].mode != wave.mode:
                    self.changed(gpio, until_us)
        edges = sorted(self._edges, key=itemgetter(0))
        self._edges = [edge for edge in edges if edge[0] > until_us]
        return edges[: len(edges) - len(self._edges)]

    def _play_until(self, now_us: int) -> None:
        while self._future and self._future[0][0] <= now_us:
            time_us, _, gpio, level = heapq.heappop(self._future)
            self._driven[gpio] = level
            pin = self._pins[gpio]
            if pin.mode != chip.MODE_OUTPUT and pin.external == chip.FLOATING:
                self._note(gpio, time_us, level)

    def _draw(self, gpio: int, until_us: int) -> None:
        wave = self.waves.get(gpio)
        if wave is None or not self.monitored >> gpio & 1:
            return
        if self._pins[gpio].mode == wave.mode:
            after_us = max(self._drawn_us[gpio], until_us - BUFFER_US)
            for time_us, level in wave.edges(after_us, until_us):
                self._note(gpio, time_us, level)
        self._drawn_us[gpio] = until_us

    def _note(self, gpio: int, time_us: int, level: int) -> None:
        if self._word >> gpio & 1 == level:
            return
        self._set_bit(gpio, level)
        if self.monitored:
            self._edges.append((sampled(time_us * 1000), gpio, level))
        if gpio in self.listeners:
            self.listeners[gpio](time_us, level)

    def _set_bit(self, gpio: int, level: int) -> None:
        self._word = self._word & ~(1 << gpio) | level << gpio
