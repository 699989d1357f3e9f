"""Notifications: handles, and the reports that they get.

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
"""4096 bytes, what a pipe takes whole."""
Sink = Callable[[bytes], bool]
"""Takes whole reports, or drops them; False when nobody reads there any more."""
Sample = tuple[int, int]
"""(time in microseconds, levels)."""


class State(IntEnum):
    """Numbers the states of a handle, as pigpio.h does; closing is closed here."""

    CLOSED = 0
    OPENED = 3
    RUNNING = 4
    PAUSED = 5


@dataclass(slots=True)
class Handle:
    """Keeps what a reader of reports wants; `owner` is its connection, if any."""

    sink: Sink | None = None
    owner: object = None
    state: State = State.CLOSED
    sequence: int = 0
    bits: int = 0
    event_bits: int = 0
    last_us: int = 0

    def open(self, sink: Sink, owner: object, now_us: int) -> None:
        """Gives the handle to a new reader."""
        self.sink, self.owner, self.state = sink, owner, State.OPENED
        self.sequence = self.bits = self.event_bits = 0
        self.last_us = now_us


@dataclass(slots=True)
class Batch:
    """Holds what happened since the last batch, up to `end_us`."""

    end_us: int
    before: int
    samples: Sequence[Sample]
    levels: int
    """The levels at the end."""
    watchdogs: int
    events: int

    def changes(self, bits: int) -> list[Sample]:
        """Returns the samples in which one of the bits differs from the one before."""
        out, old = [], self.before & bits
        for sample in self.samples:
            new = sample[1] & bits
            if new != old:
                out.append(sample)
                old = new
        return out


class Notifier:
    """Keeps the 32 handles, and sends each its reports."""

    def __init__(self) -> None:
        self.handles = [Handle() for _ in range(SLOTS)]
        self._open: list[Handle] = []
        self.monitored = 0
        """Bits that a running handle watches."""

    def free(self) -> int:
        """Returns the lowest free handle, or an error."""
        for number, handle in enumerate(self.handles):
            if handle.state is State.CLOSED:
                return number
        return Err.NO_HANDLE

    def get(self, number: int) -> Handle | None:
        """Returns an open handle; None if that number is none."""
        if number < SLOTS and self.handles[number].state is not State.CLOSED:
            return self.handles[number]
        return None

    def open(self, number: int, sink: Sink, owner: object, now_us: int) -> None:
        """Gives a handle to a new reader."""
        self.handles[number].open(sink, owner, now_us)
        self._changed()

    def watch(self, handle: Handle, bits: int, state: State) -> None:
        """Sets what a handle watches from now on, for NB and NP."""
        handle.bits, handle.state = bits, state
        self._changed()

    def close(self, handle: Handle) -> None:
        """Frees a handle; who made a pipe removes it."""
        handle.state, handle.sink, handle.owner = State.CLOSED, None, None
        handle.bits = handle.event_bits = 0
        self._changed()

    def close_owned(self, owner: object, keep: int = -1) -> None:
        """Frees the in-band handles of a connection."""
        for number, handle in enumerate(self.handles):
            if owner is not None and handle.owner is owner and number != keep:
                self.close(handle)

    def _changed(self) -> None:
        self._open = [one for one in self.handles if one.state is not State.CLOSED]
        self.monitored = 0
        for handle in self._open:
            if handle.state is State.RUNNING:
                self.monitored |= handle.bits

    def next_alive_us(self) -> int | None:
        """Tells when the next keep-alive is due; None without an open handle."""
        opened = [handle.last_us for handle in self._open]
        return min(opened) + ALIVE_US + 1 if opened else None

    def emit(self, batch: Batch) -> None:
        """Sends each handle its reports."""
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
