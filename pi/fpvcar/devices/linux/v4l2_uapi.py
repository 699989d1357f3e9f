"""Structures and numbers of V4L2's ioctls (Linux uAPI, videodev2.h).

They use ctypes, so that their sizes match the running kernel.
"""

import ctypes
from ctypes import Structure, Union, c_int, c_int32, c_long, c_uint8, c_uint32, c_ulong

CAPTURE, MMAP = 1, 1
CAN_CAPTURE, CAN_STREAM = 1 << 0, 1 << 26
DRIVER_SAYS = 1 << 31  # V4L2_CAP_DEVICE_CAPS


class Capability(Structure):
    """Structure of VIDIOC_QUERYCAP: driver, card, bus and capabilities."""

    _fields_ = [
        ("driver", c_uint8 * 16),
        ("card", c_uint8 * 32),
        ("bus", c_uint8 * 32),
        ("version", c_uint32),
        ("all", c_uint32),
        ("own", c_uint32),
        ("reserved", c_uint32 * 3),
    ]

    @property
    def captures(self) -> bool:
        """True if the device streams single-planar pictures."""
        can = self.own if self.all & DRIVER_SAYS else self.all
        return bool(can & CAN_CAPTURE and can & CAN_STREAM)

    @property
    def bus_name(self) -> str:
        """Bus of the device, such as "usb-0000:01:00.0-1.2"."""
        return bytes(self.bus).split(b"\0")[0].decode("ascii", "replace")


class Description(Structure):
    """Structure of VIDIOC_ENUM_FMT: one supported format."""

    _fields_ = [
        ("index", c_uint32),
        ("type", c_uint32),
        ("flags", c_uint32),
        ("words", c_uint8 * 32),
        ("fourcc", c_uint32),
        ("code", c_uint32),
        ("reserved", c_uint32 * 3),
    ]


class Picture(Structure):
    """Structure v4l2_pix_format: size and pixel format."""

    _fields_ = [
        (name, c_uint32)
        for name in (
            "width",
            "height",
            "fourcc",
            "field",
            "line_b",
            "size_b",
            "colorspace",
            "private",
            "flags",
            "encoding",
            "quantization",
            "transfer",
        )
    ]


class _Format(Union):
    # v4l2_window has pointers: the union is aligned as they are.
    _fields_ = [("picture", Picture), ("raw", c_uint8 * 200), ("align", c_ulong)]


class Format(Structure):
    """Structure of VIDIOC_S_FMT: the format to capture."""

    _fields_ = [("type", c_uint32), ("inner", _Format)]


class Rate(Structure):
    """Structure of VIDIOC_S_PARM for a capture device."""

    _fields_ = [
        ("type", c_uint32),
        ("can", c_uint32),
        ("mode", c_uint32),
        ("numerator", c_uint32),
        ("denominator", c_uint32),
        ("rest", c_uint8 * 184),
    ]


class Request(Structure):
    """Structure of VIDIOC_REQBUFS: number of mapped buffers."""

    _fields_ = [
        ("count", c_uint32),
        ("type", c_uint32),
        ("memory", c_uint32),
        ("can", c_uint32),
        ("reserved", c_uint32),
    ]


class _Place(Union):
    _fields_ = [("offset", c_uint32), ("pointer", c_ulong)]


class Buffer(Structure):
    """Structure of VIDIOC_QUERYBUF, QBUF and DQBUF: one buffer."""

    _fields_ = [
        ("index", c_uint32),
        ("type", c_uint32),
        ("used_b", c_uint32),
        ("flags", c_uint32),
        ("field", c_uint32),
        ("seconds", c_long),
        ("micros", c_long),
        ("timecode", c_uint32 * 4),
        ("sequence", c_uint32),
        ("memory", c_uint32),
        ("place", _Place),
        ("length", c_uint32),
        ("reserved", c_uint32),
        ("request", c_uint32),
    ]


class Query(Structure):
    """Structure of VIDIOC_QUERYCTRL: range of one control."""

    _fields_ = [
        ("id", c_uint32),
        ("type", c_uint32),
        ("name", c_uint8 * 32),
        ("least", c_int32),
        ("most", c_int32),
        ("step", c_int32),
        ("usual", c_int32),
        ("flags", c_uint32),
        ("reserved", c_uint32 * 2),
    ]


class Control(Structure):
    """Structure of VIDIOC_S_CTRL: a control and its value."""

    _fields_ = [("id", c_uint32), ("value", c_int32)]


def io_code(direction: int, number: int, kind: type[Structure] | type[c_int]) -> int:
    """Return the number of a V4L2 ioctl: 1 writes, 2 reads, 3 does both."""
    return direction << 30 | ctypes.sizeof(kind) << 16 | ord("V") << 8 | number


QUERYCAP, ENUM_FMT = io_code(2, 0, Capability), io_code(3, 2, Description)
S_FMT, REQBUFS, S_PARM = (io_code(3, 5, Format), io_code(3, 8, Request), io_code(3, 22, Rate))
QUERYBUF, QBUF, DQBUF = (io_code(3, number, Buffer) for number in (9, 15, 17))
STREAMON, STREAMOFF = io_code(1, 18, c_int), io_code(1, 19, c_int)
QUERYCTRL, S_CTRL = io_code(3, 36, Query), io_code(3, 28, Control)
