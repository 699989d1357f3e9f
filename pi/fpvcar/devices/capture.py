"""Frames of a camera without a codec, whatever drives it."""

from typing import NamedTuple, Protocol


class CaptureError(Exception):
    """The device does not do what is asked; the text says which and why."""


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
