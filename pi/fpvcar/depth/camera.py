"""Depth camera in `run`: one more range sensor, and a small picture.

child's stdout -> ChildProcess -> RecordParser -> LastReading, png    restarted after faults
"""

import logging
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from fpvcar import config
from fpvcar.config import ConfigError
from fpvcar.depth.process import SILENT
from fpvcar.devices.outlier_filter import NoiseFilter
from fpvcar.http.pages import HEADERS
from fpvcar.http.routes import answers
from fpvcar.runtime.child_process import BackOff, Supervisor
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.service import Part
from fpvcar.runtime.texts import SAYS, Text
from fpvcar.seat.feature import Core, Feature
from fpvcar.sensors.reading import JUMP_M, JUMP_SHARE, LastReading
from fpvcar.wire.camera import DEPTH_HEADER, parse_depth_header
from fpvcar.wire.errors import WireError

START_S, SILENT_S = 30.0, 2.5
"""Time limits for the first record (the bench's takes seconds to start) and between two records."""
AGAIN_S, AGAIN_MOST_S = 2.0, 30.0
"""Pause before a restart; doubled after each start in a row without a record. The programs of
the bench and of the device are a whole Python each, on a core that has no time for it."""
BLIND = Text("depth_blind", "sees nothing: covered, too near, or too bright")
log = logging.getLogger("fpvcar.depth")


class Record(NamedTuple):
    """Frame of the depth camera: nearest obstacle, capture time, and possibly a small picture
    (pack_depth)."""

    nearest_m: float
    capture_us: int
    png: bytes


class RecordParser:
    """Splits bytes of the process into records. Raises WireError for invalid ones."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Record]:
        """Yield the records that are now whole."""
        self._buffer += data
        head = DEPTH_HEADER.size
        while len(self._buffer) >= head:
            length, nearest_m, capture_us = parse_depth_header(bytes(self._buffer[:head]))
            if len(self._buffer) < head + length:
                return
            png = bytes(self._buffer[head : head + length])
            del self._buffer[: head + length]
            yield Record(nearest_m, capture_us, png)


def argv_of(depth: config.Depth, soc: Path | None) -> list[str]:
    """Return the program of a profile; empty for a car without a depth camera. Raises
    ConfigError."""
    if depth.source == "none":
        return []
    if depth.source == "bench":
        if soc is None:
            raise ConfigError('depth.source = "bench" needs a bench: `fpvcar bench`')
        return [sys.executable, "-m", "fpvcar", "camera", "bench-depth", "--soc", str(soc)]
    argv = [
        sys.executable,
        "-m",
        "fpvcar.depth.process",
        f"--fps={depth.fps}",
        f"--width={depth.width}",
        f"--height={depth.height}",
        f"--wide-deg={depth.wide_deg:g}",
    ]
    return [*argv, f"--device={depth.device}"] if depth.device else argv


def feature(core: Core) -> Feature:
    """Return the depth camera of a car, and the route of its small picture."""
    camera = DepthCamera(argv_of(core.profile.depth, core.soc), core.ranges.depth)
    return Feature(
        name="depth",
        parts=(Part("depth camera", (camera.run,)),),
        routes=lambda app: app.router.add_get("/api/depth.png", camera.picture),
    )


class DepthCamera(Supervisor):
    """Supervisor of the depth camera's process. `reading` is the nearest obstacle, `png` the
    last small picture, b"" before the first."""

    def __init__(
        self,
        argv: Sequence[str],
        reading: LastReading,
        clock_s: Clock = time.monotonic,
        start_s: float = START_S,
        silent_s: float = SILENT_S,
    ) -> None:
        super().__init__(argv, True, BackOff(AGAIN_S, AGAIN_MOST_S), silent_s)
        self.reading, self.png = reading, b""
        self._clock_s, self._start_s = clock_s, start_s
        self._records = RecordParser()
        self._began_s = self._heard_s = 0.0
        self._noise = NoiseFilter(JUMP_M, JUMP_SHARE)

    @answers(answer="image/png")
    async def picture(self, _: web.Request) -> web.Response:
        """Return the depth camera's last small picture."""
        if not self.png:
            raise web.HTTPNotFound(text="There is no depth picture.\n")
        return web.Response(body=self.png, content_type="image/png", headers=HEADERS)

    # Life of the program

    def begin(self, now_s: float) -> None:
        """Discard the record that was cut off by the end of the last process."""
        self._records = RecordParser()
        self._began_s, self._heard_s = now_s, 0.0

    def late(self, now_s: float) -> float | Text:
        """Return the time left for the next record, or the fault if it has expired."""
        limit_s = self._silence_s if self._heard_s else self._start_s
        left_s = (self._heard_s or self._began_s) + limit_s - now_s
        if left_s > 0.0:
            return left_s
        line = self.line_since(self._heard_s or self._began_s)
        silent = SILENT(seconds=f"{limit_s:g}")
        return SAYS(place=silent, reason=line) if line else silent

    def ended(self, reason: Text) -> bool:
        """Set the reason as the sensor's state, and drop the old picture. Returns True if a
        record ever came."""
        self.reading.state, self.png = reason, b""
        log.warning("%s", reason)
        return self._heard_s > 0.0

    def receive(self, data: bytes) -> None:
        """Process bytes of the program; each whole record is a reading."""
        try:
            for record in self._records.feed(data):
                self._take_record(record)
        except WireError as fault:
            self.fail(
                Text(
                    "depth_garbage", "its program sends no valid pictures ({reason})", reason=fault
                )
            )

    def _take_record(self, record: Record) -> None:
        self._heard_s = now_s = self._clock_s()
        if record.png:
            self.png = record.png
        if math.isnan(record.nearest_m):
            self.reading.update(None, BLIND, now_s)
            return
        range_m = None if math.isinf(record.nearest_m) else record.nearest_m
        if self._noise.add(range_m):
            self.reading.noisy(self._noise.nearest)
        else:
            self.reading.update(range_m, "ok", min(record.capture_us / 1e6, now_s))
