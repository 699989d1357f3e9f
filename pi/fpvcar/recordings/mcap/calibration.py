"""foxglove.CameraCalibration by hand: how a pinhole camera maps space to pixels. Pure.

timestamp 1, width 2, height 3, K 6, R 7, P 8, frame_id 9
"""

import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

from fpvcar.recordings.mcap import protobuf
from fpvcar.recordings.mcap.parsing import RecordError
from fpvcar.recordings.mcap.protobuf import fields, sized

_CALIBRATION_FILE = (
    b"\n foxglove/CameraCalibration.proto\x12\x08foxglove"
    b'\x1a\x1fgoogle/protobuf/timestamp.proto"\xb9\x01\n\x11CameraCalibration'
    b"\x12-\n\ttimestamp\x18\x01 \x01(\x0b2\x1a.google.protobuf.Timestamp"
    b"\x12\x10\n\x08frame_id\x18\t \x01(\t\x12\r\n\x05width\x18\x02 \x01(\x07"
    b"\x12\x0e\n\x06height\x18\x03 \x01(\x07\x12\x18\n\x10distortion_model\x18\x04 \x01(\t"
    b"\x12\t\n\x01D\x18\x05 \x03(\x01\x12\t\n\x01K\x18\x06 \x03(\x01"
    b"\x12\t\n\x01R\x18\x07 \x03(\x01\x12\t\n\x01P\x18\x08 \x03(\x01b\x06proto3"
)
FILES = (protobuf.TIMESTAMP_FILE, _CALIBRATION_FILE)
"""FileDescriptorProto of each, as protoc makes them; each after what it imports."""

_SIZE = struct.Struct("<BIBI")
_MATRIX = struct.Struct("<9d")
_UPRIGHT = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


class Pinhole(NamedTuple):
    """Intrinsics of a camera without distortion: `focal_px` for both axes; the optical
    axis meets the picture in its middle."""

    width: int
    height: int
    focal_px: float


def pinhole(width: int, height: int, fov_deg: float) -> Pinhole:
    """Return the intrinsics of a picture with this horizontal field of view and square pixels."""
    return Pinhole(width, height, width / 2.0 / math.tan(math.radians(fov_deg) / 2.0))


def calibration(time_ns: int, frame_id: str, camera: Pinhole) -> bytes:
    """Encode a foxglove.CameraCalibration."""
    focal, x, y = camera.focal_px, camera.width / 2.0, camera.height / 2.0
    intrinsic = (focal, 0.0, x, 0.0, focal, y, 0.0, 0.0, 1.0)
    projected = (focal, 0.0, x, 0.0, 0.0, focal, y, 0.0, 0.0, 0.0, 1.0, 0.0)
    when = protobuf.timestamp(time_ns)
    return b"".join(
        (
            b"\x0a",
            protobuf.varint(len(when)),
            when,
            _SIZE.pack(0x15, camera.width, 0x1D, camera.height),
            _doubles(6, intrinsic),
            _doubles(7, _UPRIGHT),
            _doubles(8, projected),
            sized(9, frame_id.encode()),
        )
    )


def _doubles(number: int, values: Sequence[float]) -> bytes:
    return sized(number, struct.pack(f"<{len(values)}d", *values))


def take_calibration(data: bytes) -> tuple[int, str, Pinhole]:
    """Decode a foxglove.CameraCalibration of ours: its time in ns since 1970, frame and
    intrinsics. Raises RecordError."""
    values = dict(fields(data))
    matrix = values.get(6, b"")
    if isinstance(matrix, int) or len(matrix) != _MATRIX.size:
        raise RecordError(f"an intrinsic matrix that is not of {_MATRIX.size} bytes")
    camera = Pinhole(_size(values.get(2)), _size(values.get(3)), _MATRIX.unpack(matrix)[0])
    time_ns = protobuf.take_timestamp(values.get(1, b""))
    return time_ns, protobuf.take_text(values.get(9, b"")), camera


def _size(data: int | bytes | None) -> int:
    if not isinstance(data, bytes) or len(data) != 4:
        raise RecordError("a picture without a size of 4 bytes each")
    return int.from_bytes(data, "little")
