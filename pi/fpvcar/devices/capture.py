"""Frames of a camera without a codec, whatever drives it."""

from typing import NamedTuple, Protocol

from fpvcar.config import Exposure, Flip


class CaptureError(Exception):
    """The device does not do what is asked; the text says which and why."""


class NoCamera(CaptureError):
    """There is no camera, or no longer."""


class Missing(CaptureError):
    """A part that is not installed; the text says how to install it."""


class Frame(NamedTuple):
    """One picture; `data` is the driver's memory, released when the next is taken."""

    data: memoryview
    sequence: int
    time_us: int | None


class FrameSource(Protocol):
    """A device that streams; a line of the picture has `line_b` bytes."""

    width: int
    height: int
    line_b: int

    def frame(self, timeout_s: float) -> Frame | None:
        """The next one; None if none came in time. Raises CaptureError."""

    def close(self) -> None:
        """Stops it: the device is free for others."""


class EncodedFrame(NamedTuple):
    """A picture of a camera that encodes, as Annex B, at CLOCK_MONOTONIC `time_us`."""

    key: bool
    time_us: int
    data: bytes


class EncodedSource(Protocol):
    """A camera that encodes, with an encoder that can be asked. May raise
    CaptureError."""

    fd: int
    """Readable when a frame is there."""
    size: tuple[int, int]

    def frames(self) -> list[EncodedFrame]:
        """What has come since the last call."""

    def request_key(self) -> None:
        """The next frame is an IDR."""

    def set_bitrate(self, bitrate: int) -> None:
        """Bits per second from the next frame on."""

    def set_look(self, exposure: Exposure, brightness: float, night: bool) -> None:
        """As config.Camera has them."""

    def close(self) -> None:
        """Stops it."""


class WebcamSource(FrameSource, Protocol):
    """A webcam that streams. What it sets itself is answered with True."""

    fd: int
    """Readable when a frame is there."""
    format: str
    """"H264", "YUYV" or "MJPG"."""

    def newest(self) -> Frame | None:
        """The last of those that are there. Raises CaptureError."""

    def set_flip(self, flip: Flip) -> bool:
        """Turns the picture over."""

    def set_brightness(self, share: float) -> bool:
        """From -1 to 1; 0 as it comes."""

    def set_night(self, night: bool) -> bool:
        """May expose longer than its rate allows."""

    def request_key(self) -> bool:
        """The next frame is a key frame."""

    def set_bitrate(self, bitrate: int) -> bool:
        """Bits per second."""

    def set_gop(self, frames: int) -> bool:
        """A key frame every so many, with its SPS and PPS."""
