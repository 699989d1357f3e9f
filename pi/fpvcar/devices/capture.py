"""Frames of cameras with and without a codec: the interfaces of their drivers."""

from typing import NamedTuple, Protocol

from fpvcar.config import Exposure, Flip
from fpvcar.runtime.texts import Phrase

NO_CAMERA = Phrase(
    "capture_none",
    "{program} finds no camera {number}; check the ribbon cable, then "
    "`rpicam-hello --list-cameras`",
)


class CaptureError(Exception):
    """Raised when a device refuses a request; the text names the device and the reason."""


class NoCamera(CaptureError):
    """Raised when there is no camera, or it has gone."""


class EncoderHangs(CaptureError):
    """Raised when the board's own encoder refuses to start or returns no picture."""


class PackageMissing(CaptureError):
    """Raised when a program or library is missing; the text says how to install it."""


class Frame(NamedTuple):
    """Picture of a camera; `data` is driver memory, released when the next frame is taken."""

    data: memoryview
    sequence: int
    time_us: int | None


class FrameSource(Protocol):
    """Streaming device; a line of the picture has `line_b` bytes."""

    width: int
    height: int
    line_b: int

    def frame(self, timeout_s: float) -> Frame | None:
        """Return the next frame; None after the time-out. Raises CaptureError."""

    def close(self) -> None:
        """Stop streaming and release the device."""


class EncodedFrame(NamedTuple):
    """Encoded picture as Annex B, captured at CLOCK_MONOTONIC `time_us`."""

    key: bool
    time_us: int
    data: bytes


class EncodedSource(Protocol):
    """Camera with a controllable encoder. Every method may raise CaptureError."""

    fd: int
    """Descriptor that is readable when a frame is ready."""
    size: tuple[int, int]
    fps: float
    """Frames per second, at most those of the sensor's mode."""
    sensor: str
    """Name of the sensor; "" if the camera has none."""

    def frames(self) -> list[EncodedFrame]:
        """Return the frames since the last call."""

    def request_key(self) -> None:
        """Make the next frame an IDR."""

    def set_bitrate(self, bitrate: int) -> None:
        """Set the bits per second from the next frame on."""

    def set_fps(self, most: int) -> None:
        """Set the most frames per second; the profile's rate stays the upper limit."""

    def set_image(self, exposure: Exposure, brightness: float, night: bool) -> None:
        """Set exposure, brightness and night mode; units as in config.Camera."""

    def close(self) -> None:
        """Stop the camera and its encoder."""


class WebcamSource(FrameSource, Protocol):
    """Streaming webcam. Setters return True if the device supports the setting."""

    fd: int
    """Descriptor that is readable when a frame is ready."""
    format: str
    """Pixel format: "H264", "YUYV" or "MJPG"."""

    def newest(self) -> Frame | None:
        """Return the newest ready frame. Raises CaptureError."""

    def set_flip(self, flip: Flip) -> bool:
        """Flip the picture in the webcam."""

    def set_brightness(self, share: float) -> bool:
        """Set the brightness from -1 to 1; 0 is the default."""

    def set_night(self, night: bool) -> bool:
        """Allow exposures longer than the frame interval."""

    def request_key(self) -> bool:
        """Make the next frame a key frame."""

    def set_bitrate(self, bitrate: int) -> bool:
        """Set the bits per second."""

    def set_gop(self, frames: int) -> bool:
        """Send a key frame with SPS and PPS every `frames` frames."""
