"""What a camera program writes, cut into access units.

Framed programs write wire records, stamped at the capture. Plain ones write Annex B;
their units are cut after 2 ms of silence of the pipe and stamped when their first byte
arrives, so their pictures are older than their stamps by what the camera and its
encoder took.
"""

import logging
from typing import Protocol

from fpvcar.video import h264
from fpvcar.video.h264 import AccessUnit
from fpvcar.wire.camera import RECORD_HEADER, parse_record_header

IDLE_S, IDLE_MOST_S = 0.002, 0.016
"""Silence that ends a plain unit; doubled each time it tore one."""
log = logging.getLogger("fpvcar.camera")


class Splitter(Protocol):
    """Bytes of a camera program -> access units. Raises WireError: not its format."""

    idle_s: float | None

    def feed(self, data: bytes, now_us: int) -> list[AccessUnit]:
        """What is whole after these bytes, which came at `now_us`."""

    def idle(self) -> list[AccessUnit]:
        """What is whole because nothing came for `idle_s`."""


class Records:
    """Length-prefixed records, as wire/camera.py draws them."""

    def __init__(self) -> None:
        self.idle_s: float | None = None
        self._rest = b""
        self._sets = h264.ParameterSets()

    def feed(self, data: bytes, now_us: int) -> list[AccessUnit]:
        """Cuts whole records. No stamp lies in the future: the page's clock is ours."""
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
        """Nothing: records need no silence."""
        return []


class Plain:
    """A plain Annex B stream."""

    def __init__(self) -> None:
        self.idle_s: float | None = IDLE_S
        self._splitter = h264.AnnexB()
        self._torn = 0
        self._first_us = 0

    def feed(self, data: bytes, now_us: int) -> list[AccessUnit]:
        """Cuts units; each has the time at which its first byte came."""
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
        """The open unit, if there is one."""
        unit = self._splitter.flush()
        return [AccessUnit(h264.is_key(unit), self._first_us, unit)] if unit else []
