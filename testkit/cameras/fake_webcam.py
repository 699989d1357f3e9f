"""Process of `fpvcar camera v4l2` over a webcam of tests.

The environment describes the webcam: WEBCAM_FORMATS ("H264 YUYV MJPG"), WEBCAM_GOP (frames between
its own key frames), WEBCAM_CONTROLS ("flip brightness night key"), WEBCAM_AFTER and WEBCAM_THEN
("unplugged", "silent", "torn"). The luma in the middle of each frame is the level 60, changed by
brightness.
"""

import os
import select
import sys
import threading
import time
from collections.abc import Sequence
from fractions import Fraction

import av
import numpy as np
from av.video.codeccontext import VideoCodecContext

from fpvcar.config import Flip
from fpvcar.devices import backends
from fpvcar.devices.capture import Frame, NoCamera
from fpvcar.video.programs import webcam
from fpvcar.video.programs.encoder import Encoder

LEVEL = 60


class FakeWebcam:
    """Frames by the clock; bright on the left and dark below."""

    def __init__(self, form: str, width: int, height: int, fps: float) -> None:
        self.format, self.width, self.height = form, width, height
        self.line_b = 2 * width + 8 if form == "YUYV" else 0
        self.fd = self._timer = _ticks(fps)
        self._controls = os.environ.get("WEBCAM_CONTROLS", "").split()
        self._count, self._level, self._key = 0, LEVEL, False
        self._flip: Flip = "none"
        self._gop = int(os.environ.get("WEBCAM_GOP", "30"))
        self._after = int(os.environ.get("WEBCAM_AFTER", "1000000"))
        self._then = os.environ.get("WEBCAM_THEN", "")
        self._h264 = Encoder(width, height, fps, 2_000_000)
        self._jpeg: VideoCodecContext | None = None

    def frame(self, timeout_s: float) -> Frame | None:
        """Return the frame of the clock's next tick."""
        os.read(self._timer, 8)
        self._count += 1
        if self._count > self._after and self._then == "unplugged":
            raise NoCamera("/dev/video7: the camera was unplugged")
        data = self._data()
        if self._count > self._after and self._then == "torn":
            data = data[: len(data) // 3]
        captured_us = time.monotonic_ns() // 1000
        if self._count > self._after and self._then == "silent":
            time.sleep(3600)
        return Frame(memoryview(data), self._count, captured_us)

    def newest(self) -> Frame | None:
        """Return the next frame; the queue holds one at most."""
        return self.frame(0.0)

    def _data(self) -> bytes:
        planar = np.full((self.height * 3 // 2, self.width), 128, np.uint8)
        planar[: self.height] = self._level
        planar[: self.height // 4, : self.width // 4] = 220
        planar[self.height * 3 // 4 : self.height] = 20
        picture = av.VideoFrame.from_ndarray(planar, format="yuv420p")
        if self.format == "H264":
            key, self._key = self._key or self._count % self._gop == 1, False
            return self._h264.encode(picture, key)[0]
        if self.format == "YUYV":
            plain = picture.reformat(format="yuyv422").planes[0]
            rows = np.frombuffer(bytes(plain), np.uint8).reshape(-1, plain.line_size)
            lines = np.zeros((self.height, self.line_b), np.uint8)
            lines[:, : 2 * self.width] = rows[:, : 2 * self.width]
            return lines.tobytes()
        full = picture.reformat(format="yuvj420p", dst_color_range="JPEG")
        return b"".join(bytes(packet) for packet in self._coder().encode(full))

    def _coder(self) -> VideoCodecContext:
        if self._jpeg is None:
            made = VideoCodecContext.create("mjpeg", "w")
            assert isinstance(made, VideoCodecContext)
            made.width, made.height, made.pix_fmt = self.width, self.height, "yuvj420p"
            made.time_base = Fraction(1, 30)
            made.thread_count = 1
            self._jpeg = made
        return self._jpeg

    def set_flip(self, flip: Flip) -> bool:
        return "flip" in self._controls

    def set_brightness(self, share: float) -> bool:
        if "brightness" in self._controls:
            self._level = LEVEL + round(100 * share)
        return "brightness" in self._controls

    def set_night(self, night: bool) -> bool:
        return "night" in self._controls

    def request_key(self) -> bool:
        self._key = "key" in self._controls
        return self._key

    def set_bitrate(self, bitrate: int) -> bool:
        return False

    def set_gop(self, frames: int) -> bool:
        return False

    def close(self) -> None:
        os.close(self._timer)


def _ticks(fps: float) -> int:
    """Return a descriptor that is readable at each frame; missed frames are dropped, like by a
    driver without a free buffer."""
    ours, theirs = os.pipe()

    def tick() -> None:
        while True:
            time.sleep(1.0 / fps)
            if not select.select([ours], [], [], 0.0)[0]:
                os.write(theirs, bytes(8))

    threading.Thread(target=tick, daemon=True).start()
    return ours


def open_fake(
    device: str, formats: Sequence[str], width: int, height: int, fps: float
) -> FakeWebcam:
    """Open like backends.open_webcam: with the first available format."""
    own = os.environ.get("WEBCAM_FORMATS", "YUYV").split()
    if not own:
        raise NoCamera("no webcam on USB (looked at: there is no /dev/video*)")
    return FakeWebcam(next(one for one in formats if one in own), width, height, fps)


if __name__ == "__main__":
    backends.open_webcam = open_fake
    sys.exit(webcam.main())
