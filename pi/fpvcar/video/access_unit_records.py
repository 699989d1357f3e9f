"""Splits the output of a camera program into access units.

Framed programs write wire records, stamped at the capture. Plain ones write Annex B; their units
are cut after 2 ms of silence of the pipe and stamped when their first byte arrives. Their pictures
are therefore older than their stamps by the delay of the camera and its encoder.
"""

import logging
from typing import Protocol

from fpvcar.video import h264
from fpvcar.video.h264 import AccessUnit
from fpvcar.wire.camera import RECORD_HEADER, parse_record_header

IDLE_S, IDLE_MOST_S = 0.002, 0.016
"""Silence that ends a plain unit; doubled each time it has torn one."""
log = logging.getLogger("fpvcar.camera")


class Splitter(Protocol):
    """Splits bytes of a camera program into access units. Raises WireError for another format."""

    idle_s: float | None

    def feed(self, data: bytes, now_us: int) -> list[AccessUnit]:
        """Return the units completed by these bytes, received at `now_us`."""

    def idle(self) -> list[AccessUnit]:
        """Return the units completed by a silence of `idle_s`."""


class RecordSplitter:
    """Splitter for length-prefixed records, as drawn in wire/camera.py."""

    def __init__(self) -> None:
        self.idle_s: float | None = None
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
    """Splitter for a plain Annex B stream."""

    def __init__(self) -> None:
        self.idle_s: float | None = IDLE_S
        self._splitter = h264.AnnexB()
        self._torn = 0
        self._first_us = 0

    def feed(self, data: bytes, now_us: int) -> list[AccessUnit]:
        """Return whole units; each has the arrival time of its first byte."""
        if not self._splitter.begun:
            self._first_us = now_us
        units = []
        for unit in self._splitter.feed(data):
            units.append(AccessUnit(h264.is_key(unit), self._first_us, unit))
            self._first_us = now_us
        if self._splitter.torn > self._torn:
            self._torn = self._splitter.torn
            self.idle_s = min(IDLE_MOST_S, 2 * (self.idle_s or IDLE_S))
            log.info("a unit was torn; units now end after %.3f s", self.idle_s)
        return units

    def idle(self) -> list[AccessUnit]:
        """Return the open unit, if there is one."""
        unit = self._splitter.flush()
        return [AccessUnit(h264.is_key(unit), self._first_us, unit)] if unit else []
