"""`fpvcar camera picamera2`: a Pi's own camera, with its encoder's units passed on.

A slow reader loses units, and a key frame follows. Key frames are also requested every `gop_s`
seconds, because an encoder counts frames, and these are rarer at night.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterable

from fpvcar.devices import backends
from fpvcar.devices.capture import CaptureError, EncodedSource, EncoderHangs
from fpvcar.video import options
from fpvcar.video.image_settings import ImageSettings
from fpvcar.video.process import SENSOR_WORD, Control, Pipes, report, serve, status_of
from fpvcar.wire.camera import Record


class PiCamera:
    """Implementation of process.Camera for devices/linux/picamera.py."""

    def __init__(self, source: EncodedSource, gop_s: float) -> None:
        self.fd = source.fd
        self._source, self._gop_s = source, gop_s
        self._key_s = time.monotonic()

    def take(self) -> Iterable[Record]:
        """Return the units received so far."""
        now_s = time.monotonic()
        frames = self._source.frames()
        if any(frame.key for frame in frames):
            self._key_s = now_s
        elif now_s >= self._key_s + self._gop_s:
            self._key_s = now_s
            self._source.request_key()
        now_us = round(now_s * 1e6)
        return [Record(key, min(us, now_us), data) for key, us, data in frames]

    def skip(self) -> bool:
        """Discard the pending units; return False, because later units depend on them."""
        self._source.frames()
        return False

    def request_key(self) -> None:
        """Make the next frame an IDR."""
        self._source.request_key()

    def set_bitrate(self, bitrate: int) -> None:
        """Set the bitrate from the next frame on."""
        self._source.set_bitrate(bitrate)

    def set_fps(self, most: int) -> None:
        """Set the most frames per second."""
        self._source.set_fps(most)

    def set_image(self, settings: ImageSettings) -> None:
        """Set exposure, brightness and night from one of the next frames on."""
        self._source.set_image(*settings)


def main(argv: list[str] | None = None) -> int:
    """Run the process. Returns 0 when a pipe ended; other statuses as in process.py."""
    config, software = options.parse_pi("picamera2", "A Pi's own camera, by picamera2.", argv)
    control = Control()
    # Output printed by a library must not mix with the pictures.
    pictures = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    pipes = Pipes(sys.stdin.fileno(), pictures, control)
    try:
        with contextlib.closing(backends.open_pi_camera(config, software)) as source:
            report(f"{SENSOR_WORD}{source.sensor}")
            report(f"{source.size[0]}x{source.size[1]} at {source.fps:g} fps")
            serve(PiCamera(source, config.gop_s), pipes, control)
    except EncoderHangs as fault:
        os._exit(status_of(fault))  # picamera2 would stop the encoder, and wait for it
    except CaptureError as fault:
        return status_of(fault)
    return 0


if __name__ == "__main__":
    sys.exit(main())
