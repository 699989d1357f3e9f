"""`fpvcar camera v4l2`: a USB webcam with H.264, YUYV or MJPEG.

    Capture -> YUYV | MJPEG -> yuv420p -> SoftwareFilter -> Encoder -> Record
            -> H.264 ------------------------------------> Record

The newest frame of three buffers is used; its stamp is the kernel's. H.264 is passed on unchanged.
A webcam with key frames rarer than GOP_MOST_S that takes no requests for them is encoded here
instead, because a viewer would wait for its first picture.
"""

import contextlib
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Protocol

from fpvcar.config import Camera as CameraConfig
from fpvcar.devices import backends
from fpvcar.devices.capture import CaptureError, PackageMissing, WebcamSource
from fpvcar.runtime.texts import NOT_INSTALLED, Phrase
from fpvcar.video import h264, options
from fpvcar.video.image_settings import ImageSettings, image_settings_of
from fpvcar.video.process import ANY_RATE, FIXED_RATE, Control, Pipes, report, serve, status_of
from fpvcar.wire.camera import Record

CAPTURE_RARE_KEYS = Phrase("capture_rare_keys", "its H.264 had no key frame for {seconds} s")

GOP_MOST_S = 2.5
H264, YUYV, MJPEG = "H264", "YUYV", "MJPG"
FORMATS = {"auto": (H264, YUYV, MJPEG), "h264": (H264,), "yuyv": (YUYV,), "mjpeg": (MJPEG,)}


class RareKeys(CaptureError):
    """Raised for H.264 with key frames too rare for the viewers."""


class Coder(Protocol):
    """Interface for making access units of a webcam's frames."""

    every: bool
    """Whether each frame is needed, or the newest is enough."""

    def unit(self, data: memoryview, time_us: int, key: bool) -> Record | None:
        """Return the frame's access unit, or None for a frame without one. Raises CaptureError."""

    def skipped(self) -> None:
        """Handle a gap in the frames."""

    def set_bitrate(self, bitrate: int) -> None:
        """Set the bits per second from now on."""

    def set_image(self, settings: ImageSettings) -> None:
        """Apply the settings that the webcam cannot apply by itself."""


class Webcam:
    """Streaming webcam with the coder for its frames."""

    def __init__(self, source: WebcamSource, coder: Coder, gop_s: float) -> None:
        self.fd = source.fd
        self._source, self._coder, self._gop_s = source, coder, gop_s
        self._key = False
        self._key_s = 0.0
        self._least_us = self._taken_us = 0

    def take(self) -> Iterable[Record]:
        """Return the newest frame's unit; for H.264 the next frame's."""
        frame = self._source.frame(0.0) if self._coder.every else self._source.newest()
        if frame is None or not frame.data:
            return []
        now_s = time.monotonic()
        if not self._coder.every and now_s * 1e6 < self._taken_us + self._least_us:
            return []
        self._taken_us = round(now_s * 1e6)
        key = self._key or now_s >= self._key_s + self._gop_s
        time_us = min(frame.time_us or round(now_s * 1e6), round(now_s * 1e6))
        record = self._coder.unit(frame.data, time_us, key)
        if record is not None and record.key:
            self._key, self._key_s = False, now_s
        return [record] if record else []

    def skip(self) -> bool:
        """Discard the pending frames; return True if units are encoded here and so stay whole."""
        self._source.newest()
        self._coder.skipped()
        return not self._coder.every

    def request_key(self) -> None:
        """Request a key frame from the coder and from the webcam, either of which may encode."""
        self._key = True
        self._source.request_key()

    def set_bitrate(self, bitrate: int) -> None:
        """Set the bitrate of the coder and of the webcam."""
        self._coder.set_bitrate(bitrate)
        self._source.set_bitrate(bitrate)

    def set_fps(self, most: int) -> None:
        """Encode at most so many frames a second; the webcam's own H.264 keeps its rate.

        Frames may be early by a quarter of the interval.
        """
        self._least_us = round(0.75e6 / most)

    def set_image(self, settings: ImageSettings) -> None:
        """Set exposure, brightness and night by the webcam's own controls, or else in the coder."""
        self._coder.set_image(software_settings(self._source, settings))


def software_settings(source: WebcamSource, settings: ImageSettings) -> ImageSettings:
    """Return the settings that the webcam's controls cannot apply."""
    bright = source.set_brightness(settings.brightness)
    dark = source.set_night(settings.night)
    return ImageSettings(
        settings.exposure, 0.0 if bright else settings.brightness, settings.night and not dark
    )


class Passthrough:
    """Coder that passes H.264 on. Raises RareKeys if a viewer would wait too long for a key
    frame."""

    every = True

    def __init__(self) -> None:
        self._key_us: int | None = None
        self._sets = h264.ParameterSets()

    def unit(self, data: memoryview, time_us: int, key: bool) -> Record | None:
        """Return the frame itself, with SPS and PPS before an IDR: some webcams send them once
        only."""
        unit = self._sets.ahead_of(bytes(data))
        is_key = h264.is_key(unit)
        if is_key or self._key_us is None:
            self._key_us = time_us
        if time_us - self._key_us > GOP_MOST_S * 1e6:
            raise RareKeys(CAPTURE_RARE_KEYS(seconds=f"{GOP_MOST_S:g}"))
        return Record(is_key, time_us, unit)

    def skipped(self) -> None:
        """Restart the search for a key frame, since one may have been skipped."""
        self._key_us = None

    def set_bitrate(self, bitrate: int) -> None:
        """Do nothing: the webcam sets its bitrate."""

    def set_image(self, settings: ImageSettings) -> None:
        """Do nothing: frames are not decoded here."""


def coder_of(source: WebcamSource, config: CameraConfig, settings: ImageSettings) -> Coder:
    """Return the coder for this webcam's frames."""
    if source.format == H264:
        return Passthrough()
    try:  # 60 MB that H.264 does not need
        from fpvcar.video.programs.transcoder import Transcoder
    except ImportError as fault:
        command = f"sudo apt install python3-av ({fault})"
        raise PackageMissing(NOT_INSTALLED(program="PyAV", command=command)) from None
    return Transcoder(source, config, settings)


def main(argv: list[str] | None = None) -> int:
    """Run the process. Returns 0 when a pipe ended; other statuses as in process.py."""
    config = options.parse(options.parser("v4l2", "A webcam on USB."), argv)
    control = Control()
    pipes = Pipes(sys.stdin.fileno(), sys.stdout.fileno(), control)
    formats = FORMATS[config.format]
    try:
        try:
            film(config, formats, pipes, control)
        except RareKeys as fault:
            if len(formats) == 1:
                raise
            report(f"{fault}: encoding it here")
            film(config, formats[1:], pipes, control)
    except CaptureError as fault:
        return status_of(fault)
    return 0


def film(config: CameraConfig, formats: Sequence[str], pipes: Pipes, control: Control) -> None:
    """Open the webcam and pass its pictures on until a pipe ends. Raises CaptureError."""
    source = backends.open_webcam(config.device, formats, config.width, config.height, config.fps)
    with contextlib.closing(source):
        report(f"{source.format} {source.width}x{source.height}")
        report(FIXED_RATE if source.format == H264 else ANY_RATE)
        source.set_bitrate(config.bitrate)
        source.set_gop(options.unasked_gop(config.gop_s, config.fps))
        coder = coder_of(source, config, software_settings(source, image_settings_of(config)))
        serve(Webcam(source, coder, config.gop_s), pipes, control)


if __name__ == "__main__":
    sys.exit(main())
