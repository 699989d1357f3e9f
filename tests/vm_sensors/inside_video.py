"""Runs in the VM: the V4L2 capture of the depth camera, on the kernel's vivid.

vivid has no Z16, but Y16: also 16 bits a pixel, mapped and queued alike. Limits: USB, and the pixel
values of a RealSense are not tested.
"""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from fpvcar.depth import image as depth_image
from fpvcar.devices.capture import CaptureError
from fpvcar.devices.linux.v4l2 import Capture, find
from tests.vm_sensors import tell

Y16, SIZE = "Y16 ", (640, 360)
SOON_S = 60.0
FPS = 10
"""Frames a second. vivid numbers a frame by the clock, and wakes too early by its drawing time.
If that is half a frame, on a busy host, two frames have one number."""


@contextlib.contextmanager
def capture(wanted: str = Y16) -> Iterator[Capture]:
    with contextlib.closing(Capture(find(Y16), wanted, *SIZE, FPS)) as camera:
        yield camera


def refusal(wanted: str) -> str:
    try:
        with capture(wanted):
            return ""
    except CaptureError as fault:
        return str(fault)


def frames() -> None:
    """Frames are complete, in order, and have a current time."""
    with capture() as camera:
        assert (camera.width, camera.height) == SIZE, (camera.width, camera.height)
        last = -1
        for _ in range(8):
            frame = camera.frame(SOON_S)
            assert frame is not None, "no frame"
            assert len(frame.data) == camera.line_b * camera.height, len(frame.data)
            assert frame.sequence >= last, (frame.sequence, last)
            last = frame.sequence
            assert frame.time_us is not None
            age_s = time.monotonic() - frame.time_us / 1e6
            # vivid stamps by its ideal rate: up to a frame ahead, too.
            assert -1.0 / FPS <= age_s < SOON_S, age_s


def looked_at() -> None:
    """A test picture has several depths, unlike a flat wall."""
    with capture() as camera:
        frame = camera.frame(SOON_S)
        assert frame is not None
        small = depth_image.decimated(frame.data, *SIZE, camera.line_b)
        assert (small.width, small.height) == (80, 45)
        assert len(set(small.pixels)) > 3, "one colour"
        camera.frame(SOON_S)
        try:
            bytes(frame.data)
        except ValueError:
            return
        raise AssertionError("the driver's memory is read while it writes")


def refused() -> None:
    """A format that the device does not have is refused."""
    assert refusal("Z16 ").endswith("does not offer Z16"), refusal("Z16 ")
    try:
        raise AssertionError(find("Z16 "))
    except CaptureError as fault:
        assert "no device offers Z16 (looked at: video" in str(fault), fault
    try:
        Capture(Path("/dev/video63"), Y16, *SIZE, 30)
    except CaptureError as fault:
        assert "No such file" in str(fault), fault


def busy() -> None:
    """A second user of the camera is refused; the first one keeps it."""
    with capture() as camera:
        assert camera.frame(SOON_S) is not None
        assert "resource busy" in refusal(Y16), refusal(Y16)
        assert camera.frame(SOON_S) is not None, "the first one lost it"


def again() -> None:
    """A closed camera can be opened again."""
    for _ in range(3):
        with capture() as camera:
            assert camera.frame(SOON_S) is not None


if __name__ == "__main__":
    tell({check.__name__: check for check in (frames, looked_at, refused, busy, again)})
