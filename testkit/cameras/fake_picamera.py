"""Process of `fpvcar camera picamera2`: the real picamera2 over a stand-in for libcamera, and
for /dev/video11 if the board has one.

The environment: PICAMERA_BOARD ("zero" or "pi5"), PICAMERA_COUNT, PICAMERA_BUSY, PICAMERA_SENSOR,
PICAMERA_LOG (a file for the sensor's mode), PICAMERA_HANG_AFTER (frames), PICAMERA_MISSING (not
installed), PICAMERA_ENCODER ("silent", or the errno of its refusal).
"""

import fcntl
import os
import sys
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from testkit.cameras import libcamera


class MemoryHeap:
    """Stand-in for /dev/dma_heap: descriptors of memory."""

    def alloc(self, name: str, size: int) -> Any:
        fd = os.memfd_create(name)
        os.truncate(fd, size)
        return SimpleNamespace(get=lambda: fd, isValid=lambda: True)

    def close(self) -> None:
        pass


def empty(name: str, **more: object) -> None:
    """Install an empty module that picamera2 imports but does not use here."""
    module = ModuleType(name)
    vars(module).update(more)
    sys.modules[name] = module


class Platform(Enum):
    """Enumeration in place of picamera2.platform's."""

    VC4 = 0
    PISP = 1


def install(board: str) -> None:
    """Make picamera2 importable, and its hardware."""
    sys.modules["libcamera"] = libcamera
    vars(libcamera)["_libcamera"] = libcamera
    for name in ("piexif", "simplejpeg", "prctl"):
        empty(name)
    empty("pidng")
    empty("pidng.camdefs", Picamera2Camera=object)
    empty("pidng.core", PICAM2DNG=object)
    empty("pykms", PixelFormat=MagicMock())
    here = Platform.PISP if board == "pi5" else Platform.VC4
    empty("picamera2.platform", Platform=Platform, get_platform=lambda: here)
    from picamera2.allocators import dmaallocator

    dmaallocator.DmaHeap = MemoryHeap
    dmaallocator.fcntl = SimpleNamespace(ioctl=lambda *_: 0)
    if board != "pi5":
        from picamera2.encoders import v4l2_encoder

        from testkit.cameras import video11

        video11.install(v4l2_encoder)
        own = fcntl.ioctl

        def ioctl(fd: Any, request: int, argument: Any = 0, mutate: bool = True) -> Any:
            if isinstance(fd, video11.Codec):
                return fd.ioctl(request, argument)
            return own(fd, request, argument, mutate)

        fcntl.ioctl = ioctl


if __name__ == "__main__":
    if os.environ.get("PICAMERA_MISSING"):
        sys.modules["picamera2"] = None  # type: ignore[assignment]
    else:
        install(os.environ.get("PICAMERA_BOARD", "zero"))
    from fpvcar.video.programs import pi_camera

    sys.exit(pi_camera.main())
