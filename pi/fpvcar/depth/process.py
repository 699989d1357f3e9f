"""Process of the depth camera: reads Z16 over V4L2 and analyses it outside of `run`.

stdout: pack_depth, one record a frame: the nearest obstacle, and a small picture ends when stdin
ends, stdout has no reader, or the camera is silent or stuck (exit status 1, with the reason as the
last line on stderr)
"""

import argparse
import contextlib
import math
import os
import select
import sys
import time
import zlib
from collections.abc import Iterator

from fpvcar.depth import image as depth_image
from fpvcar.devices import backends
from fpvcar.devices.capture import CaptureError, FrameSource
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Phrase, fault_text, stderr_line
from fpvcar.sensors.tof import SAME
from fpvcar.wire.camera import pack_depth

SILENT = Phrase("depth_silent", "sent nothing for {seconds} s")

SILENT_S = 2.0
PREVIEW_EVERY_S = 0.2
SAME_MOST = 30
"""Number of identical frames in a row that no working Z16 camera sends."""


class FreezeDetector:
    """Detector of consecutive frames that are identical to the bit, with different stamps."""

    def __init__(self) -> None:
        self._last_crc, self._same = 0, 0

    def check(self, data: memoryview, nearest_m: float) -> None:
        """Check a frame; one without any measurement is ignored, as it is all zeros. Raises
        CaptureError."""
        now = zlib.crc32(data)
        alike = now == self._last_crc and not math.isnan(nearest_m)
        self._last_crc, self._same = now, self._same + 1 if alike else 0
        if self._same >= SAME_MOST:
            raise CaptureError(SAME(count=self._same))


def records(camera: FrameSource, across: float, clock_s: Clock = time.monotonic) -> Iterator[bytes]:
    """Yield a record a frame until stdin ends. Raises CaptureError for a silent or stuck camera."""
    shown_s, freeze = -1.0, FreezeDetector()
    while not stdin_ended():
        frame = camera.frame(SILENT_S)
        if frame is None:
            raise CaptureError(SILENT(seconds=f"{SILENT_S:.0f}"))
        now_s = clock_s()
        try:
            image = depth_image.decimated(frame.data, camera.width, camera.height, camera.line_b)
        except ValueError as fault:
            print(f"depth: {fault}", file=sys.stderr, flush=True)
            continue
        nearest_m = depth_image.nearest_m(image, across)
        freeze.check(frame.data, nearest_m)
        picture = b""
        if now_s - shown_s >= PREVIEW_EVERY_S:
            shown_s, picture = now_s, depth_image.png(image)
        time_us = frame.time_us or round(now_s * 1e6)
        yield pack_depth(nearest_m, time_us, picture)


def stdin_ended() -> bool:
    """Return True once the other end of stdin is closed."""
    fd = sys.stdin.fileno()
    return bool(select.select([fd], [], [], 0.0)[0]) and not os.read(fd, 1024)


def to_stdout(data: bytes) -> None:
    """Write a whole record at once."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def main(argv: list[str] | None = None) -> int:
    """Run the process; exit status 1, with a reason on stderr, if it cannot."""
    parser = argparse.ArgumentParser(prog="python -m fpvcar.depth.process")
    parser.add_argument("--device", default="", help="/dev/videoN; else the first with Z16")
    parser.add_argument("--width", type=int, default=480)
    parser.add_argument("--height", type=int, default=270)
    parser.add_argument("--fps", type=int, default=15)
    parser.add_argument("--wide-deg", type=float, default=87.0)
    options = parser.parse_args(argv)
    try:
        across = math.tan(math.radians(options.wide_deg / 2))
        camera = backends.open_depth(options.device, options.width, options.height, options.fps)
        with contextlib.closing(camera):
            for record in records(camera, across):
                to_stdout(record)
    except CaptureError as fault:
        print(stderr_line(fault_text(fault)), file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
