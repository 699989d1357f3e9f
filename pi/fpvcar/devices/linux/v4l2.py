"""Frames of a V4L2 device, mapped (Linux uAPI, videodev2.h): for what has no codec.

    find -> Capture: S_FMT, S_PARM, REQBUFS, mmap, STREAMON -> frames -> close

The structures are ctypes', so that they are as long as this machine's kernel wants.
"""

import contextlib
import ctypes
import fcntl
import mmap
import os
import select
from ctypes import Structure, Union, c_int, c_long, c_uint8, c_uint32, c_ulong
from pathlib import Path

from fpvcar.devices.capture import CaptureError, Frame

Z16 = "Z16 "
"""Depth, 16 bits a pixel, in units of the device (1 mm)."""
CAPTURE, MMAP = 1, 1
CAN_CAPTURE, CAN_STREAM = 1 << 0, 1 << 26
BUFFERS = 3
FORMATS_MAX = 64
DRIVER_SAYS = 1 << 31  # V4L2_CAP_DEVICE_CAPS
MONOTONIC = 0x2000  # V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC
BROKEN = 0x40  # V4L2_BUF_FLAG_ERROR


class V4l2Error(CaptureError):
    """What V4L2 refused."""


class Capability(Structure):
    """VIDIOC_QUERYCAP."""

    _fields_ = [
        ("driver", c_uint8 * 16), ("card", c_uint8 * 32), ("bus", c_uint8 * 32),
        ("version", c_uint32), ("all", c_uint32), ("own", c_uint32),
        ("reserved", c_uint32 * 3),
    ]  # fmt: skip


class Description(Structure):
    """VIDIOC_ENUM_FMT."""

    _fields_ = [
        ("index", c_uint32), ("type", c_uint32), ("flags", c_uint32),
        ("words", c_uint8 * 32), ("fourcc", c_uint32), ("code", c_uint32),
        ("reserved", c_uint32 * 3),
    ]  # fmt: skip


class Picture(Structure):
    """v4l2_pix_format."""

    _fields_ = [
        (name, c_uint32)
        for name in (
            "width", "height", "fourcc", "field", "line_b", "size_b", "colorspace",
            "private", "flags", "encoding", "quantization", "transfer",
        )
    ]  # fmt: skip


class _Format(Union):
    # v4l2_window has pointers: the union is aligned as they are.
    _fields_ = [("picture", Picture), ("raw", c_uint8 * 200), ("align", c_ulong)]


class Format(Structure):
    """VIDIOC_S_FMT."""

    _fields_ = [("type", c_uint32), ("inner", _Format)]


class Rate(Structure):
    """VIDIOC_S_PARM, of a capture."""

    _fields_ = [
        ("type", c_uint32), ("can", c_uint32), ("mode", c_uint32),
        ("numerator", c_uint32), ("denominator", c_uint32), ("rest", c_uint8 * 184),
    ]  # fmt: skip


class Request(Structure):
    """VIDIOC_REQBUFS."""

    _fields_ = [
        ("count", c_uint32), ("type", c_uint32), ("memory", c_uint32),
        ("can", c_uint32), ("reserved", c_uint32),
    ]  # fmt: skip


class _Place(Union):
    _fields_ = [("offset", c_uint32), ("pointer", c_ulong)]


class Buffer(Structure):
    """VIDIOC_QUERYBUF, QBUF, DQBUF."""

    _fields_ = [
        ("index", c_uint32), ("type", c_uint32), ("used_b", c_uint32),
        ("flags", c_uint32), ("field", c_uint32), ("seconds", c_long),
        ("micros", c_long), ("timecode", c_uint32 * 4), ("sequence", c_uint32),
        ("memory", c_uint32), ("place", _Place), ("length", c_uint32),
        ("reserved", c_uint32), ("request", c_uint32),
    ]  # fmt: skip


def _code(direction: int, number: int, kind: type[Structure] | type[c_int]) -> int:
    return direction << 30 | ctypes.sizeof(kind) << 16 | ord("V") << 8 | number


QUERYCAP, ENUM_FMT = _code(2, 0, Capability), _code(3, 2, Description)
S_FMT, REQBUFS, S_PARM = _code(3, 5, Format), _code(3, 8, Request), _code(3, 22, Rate)
QUERYBUF, QBUF, DQBUF = (_code(3, number, Buffer) for number in (9, 15, 17))
STREAMON, STREAMOFF = _code(1, 18, c_int), _code(1, 19, c_int)


def fourcc(text: str) -> int:
    """ "Z16 " as the kernel has it."""
    return int.from_bytes(text.encode("ascii"), "little")


def formats(fd: int) -> list[int]:
    """What a device can capture."""
    found: list[int] = []
    for index in range(FORMATS_MAX):
        asked = Description(index=index, type=CAPTURE)
        try:
            fcntl.ioctl(fd, ENUM_FMT, asked)
        except OSError:
            break
        found.append(asked.fourcc)
    return found


def find(wanted: str, devices: Path = Path("/dev")) -> Path:
    """The first device that captures this format. Raises V4l2Error."""
    tried = sorted(devices.glob("video*"), key=lambda path: (len(path.name), path))
    for path in tried:
        try:
            fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            if _captures(fd) and fourcc(wanted) in formats(fd):
                return path
        finally:
            os.close(fd)
    names = ", ".join(path.name for path in tried) or "there is no /dev/video*"
    raise V4l2Error(f"no device offers {wanted.strip()} (looked at: {names})")


def _captures(fd: int) -> bool:
    capability = Capability()
    try:
        fcntl.ioctl(fd, QUERYCAP, capability)
    except OSError:
        return False
    can = capability.own if capability.all & DRIVER_SAYS else capability.all
    return bool(can & CAN_CAPTURE and can & CAN_STREAM)


class Capture:
    """A device that streams. Raises V4l2Error."""

    def __init__(
        self, path: Path, wanted: str, width: int, height: int, fps: int
    ) -> None:  # fmt: skip
        """The size may become the nearest that the device has."""
        self._path, self._taken = path, -1
        self._maps: list[mmap.mmap] = []
        self._views: list[memoryview] = []
        try:
            self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        except OSError as fault:
            raise V4l2Error(f"{path}: {fault.strerror}") from None
        try:
            self._set_up(wanted, width, height, fps)
        except BaseException:
            self.close()
            raise

    def _set_up(self, wanted: str, width: int, height: int, fps: int) -> None:
        asked = Format(type=CAPTURE)
        picture = asked.inner.picture
        picture.width, picture.height, picture.fourcc = width, height, fourcc(wanted)
        picture.field = 1  # progressive
        self._do(f"set {wanted.strip()} {width}x{height}", S_FMT, asked)
        if picture.fourcc != fourcc(wanted):
            raise V4l2Error(f"{self._path}: does not offer {wanted.strip()}")
        self.width, self.height = int(picture.width), int(picture.height)
        self.line_b = int(picture.line_b) or 2 * self.width
        with contextlib.suppress(V4l2Error):  # a camera with one rate has no say
            self._do("rate", S_PARM, Rate(CAPTURE, 0, 0, 1, fps))
        request = Request(count=BUFFERS, type=CAPTURE, memory=MMAP)
        self._do("ask for buffers", REQBUFS, request)
        for index in range(request.count):
            buffer = Buffer(index=index, type=CAPTURE, memory=MMAP)
            self._do("find a buffer", QUERYBUF, buffer)
            place = buffer.place.offset
            self._maps.append(mmap.mmap(self.fd, buffer.length, offset=place))
            self._do("give a buffer", QBUF, buffer)
        self._do("begin", STREAMON, c_int(CAPTURE))

    def frame(self, timeout_s: float) -> Frame | None:
        """The next one; None if none came in time."""
        self._give_back()
        if not select.select([self.fd], [], [], timeout_s)[0]:
            return None
        buffer = Buffer(type=CAPTURE, memory=MMAP)
        self._do("take a buffer", DQBUF, buffer)
        self._taken = int(buffer.index)
        used_b = 0 if buffer.flags & BROKEN else int(buffer.used_b)
        time_us = None
        if buffer.flags & MONOTONIC:
            time_us = int(buffer.seconds) * 1_000_000 + int(buffer.micros)
        whole = memoryview(self._maps[self._taken])
        self._views = [whole[:used_b], whole]
        return Frame(self._views[0], int(buffer.sequence), time_us)

    def _let_go(self) -> None:
        """Nobody reads memory that the driver writes to, or that is no more."""
        for view in self._views:
            with contextlib.suppress(BufferError):
                view.release()
        self._views = []

    def _give_back(self) -> None:
        self._let_go()
        if self._taken >= 0:
            buffer = Buffer(index=self._taken, type=CAPTURE, memory=MMAP)
            self._taken = -1
            self._do("give a buffer back", QBUF, buffer)

    def close(self) -> None:
        """Stops, and lets go of all memory: the device is free for others."""
        self._let_go()
        with contextlib.suppress(V4l2Error):
            self._do("end", STREAMOFF, c_int(CAPTURE))
        for one in self._maps:
            with contextlib.suppress(BufferError):
                one.close()
        self._maps.clear()
        os.close(self.fd)

    def _do(self, what: str, code: int, argument: "Structure | c_int") -> None:
        try:
            fcntl.ioctl(self.fd, code, argument)
        except OSError as fault:
            words = f"{self._path}: cannot {what}: {fault.strerror}"
            raise V4l2Error(words) from None
