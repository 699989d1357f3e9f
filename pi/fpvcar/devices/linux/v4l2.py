"""Raw frames of a V4L2 device, memory-mapped (Linux uAPI, videodev2.h).

find -> Capture: S_FMT, S_PARM, REQBUFS, mmap, STREAMON -> frames -> close
"""

import contextlib
import errno
import fcntl
import mmap
import os
import select
from collections.abc import Iterator, Sequence
from ctypes import Structure, c_int
from pathlib import Path

from fpvcar.devices.capture import CaptureError, Frame, NoCamera
from fpvcar.devices.linux.v4l2_uapi import (
    CAPTURE,
    DQBUF,
    ENUM_FMT,
    MMAP,
    QBUF,
    QUERYBUF,
    QUERYCAP,
    REQBUFS,
    S_FMT,
    S_PARM,
    STREAMOFF,
    STREAMON,
    Buffer,
    Capability,
    Description,
    Format,
    Picture,
    Rate,
    Request,
)
from fpvcar.runtime.texts import SAYS, Phrase, os_reason

CAPTURE_NO_FORMAT = Phrase("capture_no_format", "no device offers {format} (looked at: {devices})")
CAPTURE_NO_WEBCAM = Phrase(
    "capture_no_webcam",
    "no webcam on USB (looked at: {devices}); plug one in, or name it by camera.device of "
    "the profile",
)
CAPTURE_UNPLUGGED = Phrase(
    "capture_unplugged", "{path}: the camera was unplugged; plug it in again"
)

CALL_FAILED = Phrase("capture_call", "{path}: {call} failed: {reason}")
NOT_OFFERED = Phrase("capture_offer", "{path} does not offer {formats}")

Z16 = "Z16 "
"""Depth, 16 bits per pixel, in units of the device (1 mm)."""
BUFFERS = 3
FORMATS_MAX, NAMES_MOST = 64, 8
MONOTONIC = 0x2000  # V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC
BROKEN = 0x40  # V4L2_BUF_FLAG_ERROR
GONE = (errno.ENODEV, errno.ENXIO, errno.ENOENT)


def fourcc(text: str) -> int:
    """Return "Z16 " as the kernel's number."""
    return int.from_bytes(text.encode("ascii"), "little")


def formats(fd: int) -> list[int]:
    """Return the formats that a device can capture."""
    fourccs: list[int] = []
    for index in range(FORMATS_MAX):
        description = Description(index=index, type=CAPTURE)
        try:
            fcntl.ioctl(fd, ENUM_FMT, description)
        except OSError:
            break
        fourccs.append(description.fourcc)
    return fourccs


def find(format: str, devices: Path = Path("/dev")) -> Path:
    """Return the first device that captures this format. Raises NoCamera."""
    for path, fd in _devices(devices):
        if fourcc(format) in formats(fd):
            return path
    raise NoCamera(CAPTURE_NO_FORMAT(format=format.strip(), devices=_names(devices)))


def find_webcam(names: Sequence[str], devices: Path = Path("/dev")) -> Path:
    """Return the first USB device with one of these formats. A Pi has a dozen devices that are no
    cameras, and a depth camera is on USB, too. Raises NoCamera."""
    for path, fd in _devices(devices):
        offered = formats(fd) if _capability(fd).bus_name.startswith("usb-") else []
        if any(fourcc(name) in offered for name in names):
            return path
    raise NoCamera(CAPTURE_NO_WEBCAM(devices=_names(devices)))


def _devices(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield path and open descriptor of each capture device."""
    for path in _paths(folder):
        try:
            fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            if _capability(fd).captures:
                yield path, fd
        finally:
            os.close(fd)


def _paths(folder: Path) -> list[Path]:
    return sorted(folder.glob("video*"), key=lambda path: (len(path.name), path))


def _names(folder: Path) -> str:
    names = [path.name for path in _paths(folder)]
    more = ["…"] if len(names) > NAMES_MOST else []
    return ", ".join([*names[:NAMES_MOST], *more]) or "–"


def _capability(fd: int) -> Capability:
    capability = Capability()
    with contextlib.suppress(OSError):  # a device without capabilities
        fcntl.ioctl(fd, QUERYCAP, capability)
    return capability


class Device:
    """Open V4L2 device. Raises CaptureError; NoCamera if it is absent."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        except OSError as fault:
            kind = NoCamera if fault.errno in GONE else CaptureError
            raise kind(SAYS(place=path, reason=os_reason(fault))) from None

    def set_format(self, name: str, width: int, height: int, fps: float) -> Picture:
        """Set the nearest supported format."""
        request = Format(type=CAPTURE)
        picture = request.inner.picture
        picture.width, picture.height, picture.fourcc = width, height, fourcc(name)
        picture.field = 1  # progressive
        self.do(f"S_FMT {name.strip()} {width}x{height}", S_FMT, request)
        if picture.fourcc != fourcc(name):
            raise CaptureError(NOT_OFFERED(path=self.path, formats=name.strip()))
        self.rate = Rate(CAPTURE, 0, 0, 1000, round(fps * 1000))
        with contextlib.suppress(CaptureError):  # a camera with one rate rejects it
            self.do("S_PARM", S_PARM, self.rate)
        return Picture.from_buffer_copy(picture)

    def fits(self, name: str, width: int, height: int, fps: float) -> tuple[int, int]:
        """Return how well a format fits: exact size, and nearly the rate."""
        picture = self.set_format(name, width, height, fps)
        rate = self.rate.denominator / max(self.rate.numerator, 1)
        return (picture.width, picture.height) == (width, height), rate > 0.9 * fps

    def close(self) -> None:
        os.close(self.fd)

    def do(self, name: str, code: int, argument: "Structure | c_int") -> None:
        """Call an ioctl; `name` is its name in the error text."""
        try:
            fcntl.ioctl(self.fd, code, argument)
        except OSError as fault:
            if fault.errno in GONE:
                raise NoCamera(CAPTURE_UNPLUGGED(path=self.path)) from None
            reason = os_reason(fault)
            raise CaptureError(CALL_FAILED(path=self.path, call=name, reason=reason)) from None


def choose(path: Path, formats_allowed: Sequence[str], width: int, height: int, fps: float) -> str:
    """Return the first of the wanted formats that fits best. Raises CaptureError."""
    with contextlib.closing(Device(path)) as device:
        offered = formats(device.fd)
        fits = {
            name: device.fits(name, width, height, fps)
            for name in formats_allowed
            if fourcc(name) in offered
        }
    if not fits:
        names = ", ".join(name.strip() for name in formats_allowed)
        raise CaptureError(NOT_OFFERED(path=path, formats=names))
    return max(fits, key=lambda name: fits[name])


class Capture(Device):
    """Device that streams frames through mapped buffers. Raises CaptureError."""

    def __init__(self, path: Path, format: str, width: int, height: int, fps: float) -> None:
        """The size may change to the nearest supported one."""
        super().__init__(path)
        self._taken = -1
        self._maps: list[mmap.mmap] = []
        self._views: list[memoryview] = []
        try:
            self._set_up(format, width, height, fps)
        except BaseException:
            self.close()
            raise

    def _set_up(self, format: str, width: int, height: int, fps: float) -> None:
        picture = self.set_format(format, width, height, fps)
        self.width, self.height = int(picture.width), int(picture.height)
        self.line_b = int(picture.line_b) or 2 * self.width
        request = Request(count=BUFFERS, type=CAPTURE, memory=MMAP)
        self.do("REQBUFS", REQBUFS, request)
        for index in range(request.count):
            buffer = Buffer(index=index, type=CAPTURE, memory=MMAP)
            self.do("QUERYBUF", QUERYBUF, buffer)
            place = buffer.place.offset
            self._maps.append(mmap.mmap(self.fd, buffer.length, offset=place))
            self.do("QBUF", QBUF, buffer)
        self.do("STREAMON", STREAMON, c_int(CAPTURE))

    def frame(self, timeout_s: float) -> Frame | None:
        """Return the next frame; None after the time-out."""
        self._give_back()
        if not select.select([self.fd], [], [], timeout_s)[0]:
            return None
        buffer = Buffer(type=CAPTURE, memory=MMAP)
        self.do("DQBUF", DQBUF, buffer)
        self._taken = int(buffer.index)
        used_b = 0 if buffer.flags & BROKEN else int(buffer.used_b)
        time_us = None
        if buffer.flags & MONOTONIC:
            time_us = int(buffer.seconds) * 1_000_000 + int(buffer.micros)
        view = memoryview(self._maps[self._taken])
        self._views = [view[:used_b], view]
        return Frame(self._views[0], int(buffer.sequence), time_us)

    def newest(self) -> Frame | None:
        """Return the newest ready frame and drop the older ones."""
        frame = None
        while select.select([self.fd], [], [], 0.0)[0]:
            frame = self.frame(0.0)
        return frame

    def _let_go(self) -> None:
        """Release all views, so that no reader touches memory written by the driver or unmapped."""
        for view in self._views:
            with contextlib.suppress(BufferError):
                view.release()
        self._views = []

    def _give_back(self) -> None:
        self._let_go()
        if self._taken >= 0:
            buffer = Buffer(index=self._taken, type=CAPTURE, memory=MMAP)
            self._taken = -1
            self.do("QBUF", QBUF, buffer)

    def close(self) -> None:
        """Stop streaming, unmap all memory and release the device."""
        self._let_go()
        with contextlib.suppress(CaptureError):
            self.do("STREAMOFF", STREAMOFF, c_int(CAPTURE))
        for mapping in self._maps:
            with contextlib.suppress(BufferError):
                mapping.close()
        self._maps.clear()
        super().close()
