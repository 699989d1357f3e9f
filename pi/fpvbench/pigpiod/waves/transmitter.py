"""Transmitter: plays waves onto the pins, for WVTX, WVTXR, WVTXM and WVCHA.

It is idle between the calls of `advance`; each call catches up with the time. Pulses on watched
pins are put on the sampler's grid, one by one; on the other pins only the last levels count.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fpvbench.pigpiod.lines import Lines
from fpvbench.pigpiod.pwm import sampled
from fpvbench.pigpiod.waves.pulses import Pulse
from fpvbench.pigpiod.waves.waves import Node, Wave, after

LEAD_US = 20
"""Wait of DMA before the first pulse."""
EVERY_US = 1000
"""Interval between calls of `advance` while pulses follow each other faster."""
PASS_COST, SAMPLE_COST = 5, 5
WORK_PER_US, WORK_MAX = 2, 40_000
"""Work budget per microsecond, and its maximum after a stall; a pulse costs 1. A wave that
exceeds the budget is played more slowly, so that scripts and reports continue."""


class _Pass(NamedTuple):
    """Item being played: a wave or a pause, with its start time and length."""

    wave: Wave | None
    start_us: int
    length_us: int


class Transmitter:
    """Player of one wave or chain at a time, like a DMA channel."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._passes: Iterator[tuple[Wave | None, int]] | None = None
        self._now: _Pass | None = None
        self._index = 0
        """Index of the next pulse of the pass."""
        self._end: Node | None = None
        """Last node sent; a wave sent in step follows it."""
        self._reached_us = 0
        self._work = 0
        self.clocked = False
        """Whether the PWM hardware's clock paces waves; then it generates no PWM."""

    @property
    def busy(self) -> bool:
        """Return whether an item is being played."""
        return self._now is not None

    @property
    def wave(self) -> Wave | None:
        """Return the wave that is being played, or None in a chain's pause."""
        return self._now.wave if self._now is not None else None

    def send(self, node: Node, now_us: int) -> None:
        """Play a wave or chain now, in place of the present one."""
        self.stop()
        self._end, self._reached_us, self._work = node, now_us, WORK_MAX
        self._passes, self._lines.feed = _passes(node), self.advance
        self._next(now_us + LEAD_US)

    def follow(self, node: Node, now_us: int) -> None:
        """Play a wave after the last node sent, or now if the transmitter is idle."""
        if self._end is None:
            self.send(node, now_us)
            return
        self._end.next = node
        if self.busy:
            self._end = node
        else:
            self.send(node, now_us)

    def stop(self) -> None:
        """Stop playing; the pins keep their levels."""
        self._passes = self._now = self._end = self._lines.feed = None

    def next_us(self) -> int | None:
        """Return the time at which `advance` is due, or None if the transmitter is idle."""
        if self._now is None:
            return None
        wave, start_us, length_us = self._now
        due_us = start_us + length_us
        if wave is not None and self._index < len(wave.pulses):
            due_us = start_us + wave.pulses[self._index].at_us
        return max(due_us, self._reached_us + EVERY_US)

    def advance(self, now_us: int) -> None:
        """Play all pulses up to now."""
        if self._now is None or now_us <= self._reached_us:
            return
        passed_us, self._reached_us = now_us - self._reached_us, now_us
        self._work = min(self._work + passed_us * WORK_PER_US, WORK_MAX)
        on = off = 0
        while self._now is not None and self._now.start_us <= now_us:
            wave, start_us, length_us = self._now
            if self._work <= 0:
                late_us = min(passed_us, now_us - start_us)
                self._now = _Pass(wave, start_us + late_us, length_us)
                break
            if wave is not None:
                end = self._due(wave.pulses, now_us - start_us)
                pulses = wave.pulses[self._index : end]
                self._index = end
                if self._lines.watches(wave.pins):
                    self._lines.latch(on, off, start_us)
                    on = off = 0
                    self._play(pulses, start_us)
                else:
                    on, off = after(pulses, on, off)
                self._work -= len(pulses)
            self._work -= PASS_COST
            if start_us + length_us > now_us:
                break
            self._next(start_us + length_us)
        self._lines.latch(on, off, now_us)

    def _due(self, pulses: Sequence[Pulse], until_us: int) -> int:
        end = self._index
        while end < len(pulses) and pulses[end].at_us <= until_us:
            end += 1
        return end

    def _play(self, pulses: Sequence[Pulse], start_us: int) -> None:
        """Put pulses on the sampler's grid; pulses on one sample become one change."""
        index = 0
        while index < len(pulses):
            sample_us = sampled((start_us + pulses[index].at_us) * 1000)
            end = index + 1
            while end < len(pulses) and start_us + pulses[end].at_us <= sample_us:
                end += 1
            self._lines.latch(*after(pulses[index:end]), sample_us)
            self._work -= SAMPLE_COST
            index = end

    def _next(self, start_us: int) -> None:
        assert self._passes is not None
        step = next(self._passes, None)
        self._index = 0
        if step is None:
            self._now = self._passes = self._lines.feed = None
        else:
            self._now = _Pass(step[0], start_us, step[1])


def _passes(node: Node | None) -> Iterator[tuple[Wave | None, int]]:
    """Yield the passes from a node on; read each `next` only when it is reached."""
    while node is not None:
        yield from node.passes()
        node = node.next
