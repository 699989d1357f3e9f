"""Stdout of framed programs -> run: binary, one record a picture.

Record of a camera:

    | payload length u32 | kind u8 | flags u8 | 0 u16 | capture time, us u64 |

16 bytes, then the access unit. kind and flags as on /ws/video. Record of a depth camera:

    | payload length u32 | nearest, m f32 | capture time, us u64 |

16 bytes, then a PNG or nothing. Infinity: no obstacle near; NaN: the camera is blind.
"""

import struct
from typing import NamedTuple

from fpvcar.wire.errors import WireError
from fpvcar.wire.video import FLAG_KEY, KIND_ACCESS_UNIT, UNIT_MAX_BYTES

RECORD_HEADER = struct.Struct("<IBBHQ")
DEPTH_HEADER = struct.Struct("<IfQ")
DEPTH_PNG_MAX_BYTES = 1 << 18


class Record(NamedTuple):
    """Access unit of a camera process."""

    key: bool
    capture_us: int
    unit: bytes


def pack_record(key: bool, capture_us: int, unit: bytes) -> bytes:
    """Pack one record for a camera process's stdout."""
    flags = FLAG_KEY if key else 0
    return RECORD_HEADER.pack(len(unit), KIND_ACCESS_UNIT, flags, 0, capture_us) + unit


def parse_record_header(head: bytes) -> tuple[int, bool, int]:
    """Return (payload length, key, capture_us) of a 16-byte header. Raises WireError."""
    length, kind, flags, zero, capture_us = RECORD_HEADER.unpack(head)
    if kind != KIND_ACCESS_UNIT or zero or flags & ~FLAG_KEY:
        raise WireError("not a camera record", head.hex(), "kind 1, flags 0 or 1")
    if not 0 < length <= UNIT_MAX_BYTES:
        raise WireError("access unit length", length, f"1 to {UNIT_MAX_BYTES} bytes")
    return length, bool(flags & FLAG_KEY), capture_us


def pack_depth(nearest_m: float, capture_us: int, png: bytes) -> bytes:
    """Pack one record for a depth process's stdout."""
    return DEPTH_HEADER.pack(len(png), nearest_m, capture_us) + png


def parse_depth_header(head: bytes) -> tuple[int, float, int]:
    """Return (payload length, nearest_m, capture_us) of a 16-byte header. Raises WireError."""
    length, nearest_m, capture_us = DEPTH_HEADER.unpack(head)
    if length > DEPTH_PNG_MAX_BYTES:
        raise WireError("depth picture", length, f"<= {DEPTH_PNG_MAX_BYTES} bytes")
    if nearest_m < 0.0:  # NaN means blind
        raise WireError("nearest thing", nearest_m, ">= 0 m")
    return length, nearest_m, capture_us
