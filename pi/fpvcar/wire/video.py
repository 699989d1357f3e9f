"""/ws/video, car -> browser: binary, one access unit a frame.

    0        1        2        3        4                 8
    +--------+--------+--------+--------+-----------------+
    | version| kind   | flags  | 0      | sequence     u32|
    +--------+--------+--------+--------+-----------------+
    | capture time, us u64              | payload len  u32|  20 bytes
    +-----------------------------------+-----------------+

kind 1: one access unit, Annex B. flags bit 0: key frame (SPS and PPS in front). The browser may
send three text frames back: "key" (its decoder lost its place), "fps N" (it can show at most N
pictures a second, 1 to 120), and once, first, the hello of /ws/drive. Its `client` links the socket
to the page: only a linked socket of the driver sets bitrate and rate of the camera, and has copies.
The id in the URL is no secret.
"""

import re
import struct
from typing import NamedTuple

from fpvcar.runtime.units import MIB
from fpvcar.wire.errors import VERSION, WireError

UNIT_MAX_BYTES = 4 * MIB
"""Longest access unit on any wire (a 1280x720 key frame is some 150 kB)."""
VIDEO_HEADER = struct.Struct("<BBBxIQI")
FPS_MOST = 120
"""Highest rate of a camera, and the wish of a page that can show all pictures."""
FPS = re.compile(r"fps (\d{1,3})\Z")
KIND_ACCESS_UNIT = 1
FLAG_KEY = 1


class VideoHeader(NamedTuple):
    """Fields of a /ws/video header; `sequence` wraps at 2**32."""

    key: bool
    sequence: int
    capture_us: int
    length: int


def parse_fps(text: object) -> int | None:
    """Return N of "fps N", None for other texts and other numbers than 1 to FPS_MOST."""
    match = FPS.match(text) if isinstance(text, str) else None
    return int(match[1]) if match and 1 <= int(match[1]) <= FPS_MOST else None


def pack_video_header(key: bool, sequence: int, capture_us: int, length: int) -> bytes:
    """Pack the header of an access unit of `length` bytes."""
    flags = FLAG_KEY if key else 0
    return VIDEO_HEADER.pack(
        VERSION, KIND_ACCESS_UNIT, flags, sequence & 0xFFFFFFFF, capture_us, length
    )


def pack_video(key: bool, sequence: int, capture_us: int, unit: bytes) -> bytes:
    """Pack one frame of /ws/video."""
    return pack_video_header(key, sequence, capture_us, len(unit)) + unit


def parse_video(frame: bytes) -> tuple[VideoHeader, bytes]:
    """Return the header and access unit of one frame. Raises WireError."""
    if len(frame) < VIDEO_HEADER.size:
        raise WireError("video frame cut", len(frame), f">= {VIDEO_HEADER.size} bytes")
    version, kind, flags, sequence, capture_us, length = VIDEO_HEADER.unpack_from(frame)
    if version != VERSION:
        raise WireError("wrong version", version, str(VERSION))
    if kind != KIND_ACCESS_UNIT:
        raise WireError("unknown video kind", kind, str(KIND_ACCESS_UNIT))
    if length != len(frame) - VIDEO_HEADER.size:
        payload_b = len(frame) - VIDEO_HEADER.size
        raise WireError("video frame length", length, f"{payload_b} bytes")
    header = VideoHeader(bool(flags & FLAG_KEY), sequence, capture_us, length)
    return header, frame[VIDEO_HEADER.size :]
