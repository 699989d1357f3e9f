"""Notifications: handles, and the reports sent to them.

report    u16 sequence | u16 flags | u32 tick | u32 levels of GPIO 0-31
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from fpvbench.pigpiod.protocol import Err

SLOTS = 32
REPORT = struct.Struct("<HHII")
FLAG_WATCHDOG, FLAG_ALIVE, FLAG_EVENT = 0x20, 0x40, 0x80
ALIVE_US = 60_000_000
EVENTS = 32
REPORTS_PER_WRITE = 341
"""4096 bytes, the largest atomic write to a pipe."""
Sink = Callable[[bytes], bool]
"""Function that accepts or drops whole reports, and returns False once its reader is gone."""
Sample = tuple[int, int]
"""Levels of GPIO 0-31 at a time: (time in microseconds, levels)."""


class State(IntEnum):
    """States of a handle, numbered as in pigpio.h; closing is merged into closed here."""

    CLOSED = 0
    OPENED = 3
    RUNNING = 4
    PAUSED = 5


@dataclass(slots=True)
class Handle:
    """Subscription of a reader of reports; `owner` is its connection, if any."""

    sink: Sink | None = None
    owner: object = None
    state: State = State.CLOSED
    sequence: int = 0
    bits: int = 0
    event_bits: int = 0
    last_us: int = 0

    def open(self, sink: Sink, owner: object, now_us: int) -> None:
        """Assign the handle to a new reader."""
        self.sink, self.owner, self.state = sink, owner, State.OPENED
        self.sequence = self.bits = self.event_bits = 0
        self.last_us = now_us


@dataclass(slots=True)
class Batch:
    """Samples and events since the last batch, up to `end_us`."""

    end_us: int
    before: int
    samples: Sequence[Sample]
    levels: int
    """Levels at the end of the batch."""
    watchdogs: int
    events: int

    def changes(self, bits: int) -> list[Sample]:
        """Return the samples at which one of the bits differs from its predecessor."""
        out, last_levels = [], self.before & bits
        for sample in self.samples:
            levels = sample[1] & bits
            if levels != last_levels:
                out.append(sample)
                last_levels = levels
        return out


class Notifier:
    """Set of the 32 handles, and sender of their reports."""

    def __init__(self) -> None:
        self.handles = [Handle() for _ in range(SLOTS)]
        self._open: list[Handle] = []
        self.monitored = 0
        """Bits watched by running handles."""

    def free(self) -> int:
        """Return the lowest free handle, or an error."""
        for number, handle in enumerate(self.handles):
            if handle.state is State.CLOSED:
                return number
        return Err.NO_HANDLE

    def get(self, number: int) -> Handle | None:
        """Return an open handle, or None if the number has no open handle."""
        if number < SLOTS and self.handles[number].state is not State.CLOSED:
            return self.handles[number]
        return None

    def open(self, number: int, sink: Sink, owner: object, now_us: int) -> None:
        """Assign a handle to a new reader."""
        self.handles[number].open(sink, owner, now_us)
        self._changed()

    def watch(self, handle: Handle, bits: int, state: State) -> None:
        """Set the bits that a handle watches from now on, for NB and NP."""
        handle.bits, handle.state = bits, state
        self._changed()

    def close(self, handle: Handle) -> None:
        """Free a handle; the creator of its pipe removes the pipe."""
        handle.state, handle.sink, handle.owner = State.CLOSED, None, None
        handle.bits = handle.event_bits = 0
        self._changed()

    def close_owned(self, owner: object, keep: int = -1) -> None:
        """Free the in-band handles of a connection."""
        for number, handle in enumerate(self.handles):
            if owner is not None and handle.owner is owner and number != keep:
                self.close(handle)

    def _changed(self) -> None:
        self._open = [entry for entry in self.handles if entry.state is not State.CLOSED]
        self.monitored = 0
        for handle in self._open:
            if handle.state is State.RUNNING:
                self.monitored |= handle.bits

    def next_alive_us(self) -> int | None:
        """Return the due time of the next keep-alive, or None without an open handle."""
        opened = [handle.last_us for handle in self._open]
        return min(opened) + ALIVE_US + 1 if opened else None

    def emit(self, batch: Batch) -> None:
        """Send the reports of a batch to each handle."""
        for handle in self._open:
            reports = self._reports(handle, batch)
            if reports:
                handle.last_us = batch.end_us
                self._send(handle, reports)

    def _reports(self, handle: Handle, batch: Batch) -> list[bytes]:
        entries: list[tuple[int, int, int]] = []
        if handle.state is State.RUNNING:
            for time_us, levels in batch.changes(handle.bits):
                entries.append((0, time_us, levels))
            for gpio in _numbers(batch.watchdogs & handle.bits):
                entries.append((FLAG_WATCHDOG | gpio, batch.end_us, batch.levels))
        for event in _numbers(batch.events & handle.event_bits):
            entries.append((FLAG_EVENT | event, batch.end_us, batch.levels))
        if not entries and batch.end_us - handle.last_us > ALIVE_US:
            entries.append((FLAG_ALIVE, batch.end_us, batch.levels))
        return [_pack(handle, *entry) for entry in entries]

    def _send(self, handle: Handle, reports: list[bytes]) -> None:
        for start in range(0, len(reports), REPORTS_PER_WRITE):
            part = b"".join(reports[start : start + REPORTS_PER_WRITE])
            if handle.sink is not None and not handle.sink(part):
                self.close(handle)
                return


def _numbers(bits: int) -> list[int]:
    return [number for number in range(32) if bits >> number & 1] if bits else []


def _pack(handle: Handle, flags: int, time_us: int, levels: int) -> bytes:
    report = REPORT.pack(handle.sequence, flags, time_us & 0xFFFFFFFF, levels)
    handle.sequence = handle.sequence + 1 & 0xFFFF
    return report
