"""`fpvcar camera v4l2`: a webcam on USB, whatever of H.264, YUYV and MJPEG it gives.

    Capture -> YUYV | MJPEG -> yuv420p -> Lens -> Encoder -> Record
            -> H.264 ------------------------------------> Record

Of three buffers the newest frame is taken; its stamp is the kernel's. H.264 is passed
on as it comes; a webcam whose key frames are rarer than GOP_MOST_S, and cannot be asked
for, is encoded here instead: a viewer would wait for its first picture.
"""

import contextlib
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Protocol

from fpvcar.config import Camera as Wanted
from fpvcar.devices import backends
from fpvcar.devices.capture import CaptureError, Missing, WebcamSource
from fpvcar.video import h264, options
from fpvcar.video.image_settings import Look, look_of
from fpvcar.video.process import Control, Pipes, report, serve, status_of
from fpvcar.wire.camera import Record

GOP_MOST_S = 2.5
H264, YUYV, MJPEG = "H264", "YUYV", "MJPG"
FORMATS = {"auto": (H264, YUYV, MJPEG), "h264": (H264,), "yuyv": (YUYV,), "mjpeg": (MJPEG,)}


class RareKeys(CaptureError):
    """H.264 without key frames where they are needed."""


class Coder(Protocol):
    """What makes access units of a webcam's frames."""

    every: bool
    """Whether each frame is needed, or the newest will do."""

    def unit(self, data: memoryview, time_us: int, key: bool) -> Record | None:
        """The frame's access unit; None if it has none. Raises CaptureError."""

    def skipped(self) -> None:
        """Frames were left out."""

    def set_bitrate(self, bitrate: int) -> None:
        """Bits per second from now on."""

    def set_look(self, look: Look) -> None:
        """What the webcam cannot by itself."""


class Webcam:
    """A webcam that streams, and what makes access units of its frames."""

    def __init__(self, source: WebcamSource, coder: Coder, gop_s: float) -> None:
        self.fd = source.fd
        self._source, self._coder, self._gop_s = source, coder, gop_s
        self._key = False
        self._key_s = 0.0

    def take(self) -> Iterable[Record]:
        """The newest frame's unit; of H.264 the next frame's."""
        frame = self._source.frame(0.0) if self._coder.every else self._source.newest()
        if frame is None or not frame.data:
            return []
        now_s = time.monotonic()
        key = self._key or now_s >= self._key_s + self._gop_s
        time_us = min(frame.time_us or round(now_s * 1e6), round(now_s * 1e6))
        record = self._coder.unit(frame.data, time_us, key)
        if record is not None and record.key:
            self._key, self._key_s = False, now_s
        return [record] if record else []

    def skip(self) -> bool:
        """What is encoded here is whole whatever was left out."""
        self._source.newest()
        self._coder.skipped()
        return not self._coder.every

    def request_key(self) -> None:
        """Asks the encoder, and the webcam in case that it is the encoder."""
        self._key = True
        self._source.request_key()

    def set_bitrate(self, bitrate: int) -> None:
        """Asks both, too."""
        self._coder.set_bitrate(bitrate)
        self._source.set_bitrate(bitrate)

    def set_look(self, look: Look) -> None:
        """By the webcam's own controls; what it has not got is done here."""
        self._coder.set_look(rest_of(self._source, look))


def rest_of(source: WebcamSource, look: Look) -> Look:
    """What of a look the webcam's controls leave to be done."""
    bright = source.set_brightness(look.brightness)
    dark = source.set_night(look.night)
    return Look(look.exposure, 0.0 if bright else look.brightness, look.night and not dark)


class Passed:
    """H.264 as it comes. Raises RareKeys if a viewer would wait too long for a key."""

    every = True

    def __init__(self) -> None:
        self._key_us: int | None = None
        self._sets = h264.ParameterSets()

    def unit(self, data: memoryview, time_us: int, key: bool) -> Record | None:
        """The frame itself; before an IDR its SPS and PPS, which some send once."""
        unit = self._sets.ahead_of(bytes(data))
        is_key = h264.is_key(unit)
        if is_key or self._key_us is None:
            self._key_us = time_us
        if time_us - self._key_us > GOP_MOST_S * 1e6:
            raise RareKeys(f"its H.264 had no key frame for {GOP_MOST_S:g} s")
        return Record(is_key, time_us, unit)

    def skipped(self) -> None:
        """Its key frames may have been among them."""
        self._key_us = None

    def set_bitrate(self, bitrate: int) -> None:
        """Is the webcam's business."""

    def set_look(self, look: Look) -> None:
        """Is the webcam's business: nothing is decoded here."""


def coder_of(source: WebcamSource, wanted: Wanted, look: Look) -> Coder:
    """What makes access units of this webcam's frames."""
    if source.format == H264:
        return Passed()
    try:  # 60 MB that H.264 does not need
        from fpvcar.video.transcoder import Transcoder
    except ImportError as fault:
        raise Missing(
            f"PyAV is needed for {source.format} of a webcam; sudo apt install python3-av ({fault})"
        ) from None
    return Transcoder(source, wanted, look)


def main(argv: list[str] | None = None) -> int:
    """The process. 0 when a pipe ended; else as process.py says."""
    wanted = options.parse(options.parser("v4l2", "A webcam on USB."), argv)
    control = Control()
    pipes = Pipes(sys.stdin.fileno(), sys.stdout.fileno(), control)
    formats = FORMATS[wanted.format]
    try:
        try:
            film(wanted, formats, pipes, control)
        except RareKeys as fault:
            if len(formats) == 1:
                raise
            report(f"{fault}: it is encoded here")
            film(wanted, formats[1:], pipes, control)
    except CaptureError as fault:
        return status_of(fault)
    return 0


def film(wanted: Wanted, formats: Sequence[str], pipes: Pipes, control: Control) -> None:
    """Opens the webcam and passes its pictures on until a pipe ends. Raises
    CaptureError, Missing."""
    source = backends.open_webcam(wanted.device, formats, wanted.width, wanted.height, wanted.fps)
    with contextlib.closing(source):
        report(f"{source.format} {source.width}x{source.height}")
        source.set_bitrate(wanted.bitrate)
        source.set_gop(options.unasked_gop(wanted.gop_s, wanted.fps))
        coder = coder_of(source, wanted, rest_of(source, look_of(wanted)))
        serve(Webcam(source, coder, wanted.gop_s), pipes, control)


if __name__ == "__main__":
    sys.exit(main())
