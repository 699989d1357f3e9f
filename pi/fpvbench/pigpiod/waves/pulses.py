"""Waves as lists of pulses: merged, built from serial data, and measured.

A pulse switches pins on and off, then waits. Here each pulse has its time since the wave's start;
the wait is the time to the next one.
"""

import struct
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

PULSE = struct.Struct("<III")
"""Pulse as sent by WVAG: GPIO on, GPIO off, microseconds."""


class Pulse(NamedTuple):
    """Switching of pins on and off, at a time since the wave's start."""

    at_us: int
    on: int
    off: int


class Pulses(NamedTuple):
    """Pulses of a wave, stored or pending, and its length."""

    pulses: Sequence[Pulse] = ()
    length_us: int = 0

    def waits(self) -> list[int]:
        """Return the wait after each pulse, in microseconds."""
        times = [*(pulse.at_us for pulse in self.pulses), self.length_us]
        return [end - start for start, end in pairwise(times)]

    def blocks(self) -> int:
        """Count the DMA control blocks: one per switching pulse, one per wait."""
        switches = sum(1 for pulse in self.pulses if pulse.on or pulse.off)
        return switches + sum(1 for wait_us in self.waits() if wait_us)

    def words(self) -> int:
        """Count the words that DMA writes: one for each mask that is not empty."""
        return sum(bool(pulse.on) + bool(pulse.off) for pulse in self.pulses)

    def merged(self, other: "Pulses") -> "Pulses":
        """Merge both lists for playing at once: two pulses at the same time become one."""
        if not self.pulses or not other.pulses:
            return self if self.pulses else other
        out: list[Pulse] = []
        left, right = self.pulses, other.pulses
        i = j = 0
        while i < len(left) and j < len(right):
            first, second = left[i], right[j]
            at_us = min(first.at_us, second.at_us)
            on = off = 0
            if first.at_us == at_us:
                on, off, i = first.on, first.off, i + 1
            if second.at_us == at_us:
                on, off, j = on | second.on, off | second.off, j + 1
            out.append(Pulse(at_us, on, off))
        tail = (*left[i:], *right[j:])
        return Pulses((*out, *tail), max(self.length_us, other.length_us))


def generic(triples: Iterable[tuple[int, int, int]]) -> Pulses:
    """Convert triples of (GPIO on, GPIO off, microseconds to wait) to pulses."""
    triples = list(triples)
    times = list(accumulate((wait_us for _, _, wait_us in triples), initial=0))
    pulses = [Pulse(at_us, on, off) for at_us, (on, off, _) in zip(times, triples, strict=False)]
    return Pulses(pulses, times[-1])


def bit_ends_us(baud: int, data_bits: int, half_stops: int) -> list[int]:
    """Compute the end times of a character's start bit, data bits and stop bits."""
    bit_ns = 1_000_000_000 // baud
    ends = [((number + 1) * bit_ns + 500) // 1000 for number in range(data_bits + 1)]
    return [*ends, ((data_bits + 1) * bit_ns + half_stops * bit_ns // 2 + 500) // 1000]


def characters(data: bytes, data_bits: int) -> list[int]:
    """Split data into bytes, or into little-endian words of 16 or 32 bits."""
    size = 1 if data_bits <= 8 else 2 if data_bits <= 16 else 4
    end = len(data) // size * size
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, end, size)]


def serial(
    gpio: int, baud: int, data_bits: int, half_stops: int, offset_us: int, data: bytes
) -> Pulses:
    """Build a line that idles high for `offset_us`, then sends, lowest bit first."""
    ends_us = bit_ends_us(baud, data_bits, half_stops)
    bit = 1 << gpio
    pulses = [Pulse(0, bit, 0)]
    start_us = max(offset_us, ends_us[0])
    for character in characters(data, data_bits):
        pulses.append(Pulse(start_us, 0, bit))
        level = 0
        for number in range(data_bits + 1):
            now = character >> number & 1 if number < data_bits else 1  # stop bit
            if now != level:
                at_us = start_us + ends_us[number]
                pulses.append(Pulse(at_us, bit if now else 0, 0 if now else bit))
                level = now
        start_us += ends_us[-1]
    return Pulses(pulses, start_us)
