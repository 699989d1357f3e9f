"""Splits the output of a camera program into access units.

Framed programs write wire records, stamped at the capture. Plain ones write Annex B; their units
are cut at the end of a write, or after 2 ms of silence of the pipe, and stamped when their first
byte arrives. Their pictures are therefore older than their stamps by the delay of the camera and
its encoder.
"""

import logging

from fpvcar.video import h264
from fpvcar.video.h264 import AccessUnit
from fpvcar.wire.camera import RECORD_HEADER, parse_record_header

IDLE_S, IDLE_MOST_S = 0.002, 0.016
"""Silence that ends a plain unit; doubled each time it has torn one."""
BLOCK_BYTES = 4096
"""Programs with a buffer write a large unit in multiples of this, and then its rest."""
TRUSTED = 30
"""Consecutive units ended by a write, before later units need no silence."""
log = logging.getLogger("fpvcar.camera")


class RecordSplitter:
    """Splitter for length-prefixed records, as drawn in wire/camera.py. Raises WireError for
    another format."""

    def __init__(self) -> None:
        self.idle_s: float | None = None
        """Length of the silence that ends the open unit; None without a limit."""
        self._rest = b""
        self._sets = h264.ParameterSets()

    def feed(self, data: bytes, now_us: int) -> list[AccessUnit]:
        """Return whole records. Stamps in the future become the present: the page uses our
        clock."""
        data, at, head = self._rest + data, 0, RECORD_HEADER.size
        units = []
        while len(data) - at >= head:
            length, key, capture_us = parse_record_header(data[at : at + head])
            end = at + head + length
            if len(data) < end:
                break
            unit, at = data[at + head : end], end
            unit = self._sets.ahead_of(unit) if key else unit
            units.append(AccessUnit(key, min(capture_us, now_us), unit))
        self._rest = data[at:]
        return units

    def idle(self) -> list[AccessUnit]:
        """Return no unit: records need no silence."""
        return []


class AnnexBSplitter:
    """Splitter for a plain Annex B stream.

    The end of a unit shows only in the bytes after it. But most programs write a unit at once, or
    in blocks and a rest, and a pipe passes on whole writes: a read that does not end between two
    blocks has then read a whole unit. This is trusted after TRUSTED units in a row for which it
    was true, until it is false once.

    A program that never flushes (stdio, `ffmpeg -flush_packets 0`) writes full blocks only, and
    keeps the rest of a unit in its buffer: after a full block a silence ends no unit.
    """

    def __init__(self) -> None:
        self._splitter = h264.AnnexB()
        self._idle_s = IDLE_S
        self._torn = 0
        self._first_us = 0
        self._read_bytes = 0
        self._ended = False
        """Whether the last read seems to have ended a unit."""
        self._ends: int | None = 0
        """Number of consecutive units that ended with a write; None after a wrong guess."""

    @property
    def idle_s(self) -> float | None:
        """Length of the silence that ends the open unit; None without an open unit."""
        return self._idle_s if self._splitter.begun else None

    def feed(self, data: bytes, now_us: int) -> list[AccessUnit]:
        """Return whole units; each has the arrival time of its first byte."""
        if self._ended:
            self._learn(h264.begins_unit(data))
        if not self._splitter.begun:
            self._first_us = now_us
        units = []
        for unit in self._splitter.feed(data):
            units.append(AccessUnit(h264.is_key(unit), self._first_us, unit))
            self._first_us = now_us
        if self._splitter.torn > self._torn:
            self._torn = self._splitter.torn
            self._idle_s = min(IDLE_MOST_S, 2 * self._idle_s)
            log.info("a unit was torn; units now end after %.3f s", self._idle_s)
        self._read_bytes += len(data)
        sizes = (self._splitter.pending, len(data), self._read_bytes)
        self._ended = all(size % BLOCK_BYTES for size in sizes)
        if self._ended and self._trusts:
            units += self._flush()
        return units

    def idle(self) -> list[AccessUnit]:
        """Return the open unit, if there is one."""
        if self._ended:
            self._learn(True)
        elif self._read_bytes % BLOCK_BYTES == 0 and not self._trusts:
            return []
        return self._flush()

    @property
    def _trusts(self) -> bool:
        return self._ends is not None and self._ends >= TRUSTED

    def _learn(self, ended: bool) -> None:
        """Count or refute the guess that the last read ended a unit."""
        self._ended = False
        if self._ends is not None:
            self._ends = self._ends + 1 if ended else None

    def _flush(self) -> list[AccessUnit]:
        unit = self._splitter.flush()
        return [AccessUnit(h264.is_key(unit), self._first_us, unit)] if unit else []


Splitter = RecordSplitter | AnnexBSplitter
"""Splitter of the bytes of a camera program into access units."""
