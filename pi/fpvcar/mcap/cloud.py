"""foxglove.PointCloud by hand: points as float32 x, y, z. Pure.

    timestamp 1, frame_id 2, pose 3, point_stride 4, fields 5, data 6

Of what viewers draw of a range, LaserScan and SceneUpdate are unknown to Rerun (0.41);
a point cloud is drawn by Foxglove, Lichtblick and Rerun.
"""

import struct
from collections.abc import Iterable

from fpvcar.mcap import protobuf
from fpvcar.mcap.protobuf import ProtobufError, sized

VECTOR_FILE = (
    b'\n\x16foxglove/Vector3.proto\x12\x08foxglove"*\n\x07Vector3'
    b"\x12\t\n\x01x\x18\x01 \x01(\x01\x12\t\n\x01y\x18\x02 \x01(\x01"
    b"\x12\t\n\x01z\x18\x03 \x01(\x01b\x06proto3"
)
QUATERNION_FILE = (
    b'\n\x19foxglove/Quaternion.proto\x12\x08foxglove"8\n\nQuaternion'
    b"\x12\t\n\x01x\x18\x01 \x01(\x01\x12\t\n\x01y\x18\x02 \x01(\x01"
    b"\x12\t\n\x01z\x18\x03 \x01(\x01\x12\t\n\x01w\x18\x04 \x01(\x01b\x06proto3"
)
_POSE_FILE = (
    b"\n\x13foxglove/Pose.proto\x12\x08foxglove\x1a\x19foxglove/Quaternion.proto"
    b'\x1a\x16foxglove/Vector3.proto"V\n\x04Pose\x12#\n\x08position\x18\x01 \x01(\x0b'
    b"2\x11.foxglove.Vector3\x12)\n\x0borientation\x18\x02 \x01(\x0b"
    b"2\x14.foxglove.Quaternionb\x06proto3"
)
_ELEMENT_FILE = (
    b"\n!foxglove/PackedElementField.proto\x12\x08foxglove"
    b'"\xe3\x01\n\x12PackedElementField\x12\x0c\n\x04name\x18\x01 \x01(\t'
    b"\x12\x0e\n\x06offset\x18\x02 \x01(\x07\x126\n\x04type\x18\x03 \x01(\x0e"
    b'2(.foxglove.PackedElementField.NumericType"w\n\x0bNumericType'
    b"\x12\x0b\n\x07UNKNOWN\x10\x00\x12\t\n\x05UINT8\x10\x01\x12\x08\n\x04INT8\x10\x02"
    b"\x12\n\n\x06UINT16\x10\x03\x12\t\n\x05INT16\x10\x04\x12\n\n\x06UINT32\x10\x05"
    b"\x12\t\n\x05INT32\x10\x06\x12\x0b\n\x07FLOAT32\x10\x07\x12\x0b\n\x07FLOAT64\x10\x08"
    b"b\x06proto3"
)
_CLOUD_FILE = (
    b"\n\x19foxglove/PointCloud.proto\x12\x08foxglove"
    b"\x1a!foxglove/PackedElementField.proto\x1a\x13foxglove/Pose.proto"
    b'\x1a\x1fgoogle/protobuf/timestamp.proto"\xbd\x01\n\nPointCloud'
    b"\x12-\n\ttimestamp\x18\x01 \x01(\x0b2\x1a.google.protobuf.Timestamp"
    b"\x12\x10\n\x08frame_id\x18\x02 \x01(\t\x12\x1c\n\x04pose\x18\x03 \x01(\x0b"
    b"2\x0e.foxglove.Pose\x12\x14\n\x0cpoint_stride\x18\x04 \x01(\x07"
    b"\x12,\n\x06fields\x18\x05 \x03(\x0b2\x1c.foxglove.PackedElementField"
    b"\x12\x0c\n\x04data\x18\x06 \x01(\x0cb\x06proto3"
)
FILES = (
    protobuf.TIMESTAMP_FILE,
    VECTOR_FILE,
    QUATERNION_FILE,
    _POSE_FILE,
    _ELEMENT_FILE,
    _CLOUD_FILE,
)
"""FileDescriptorProto of each, as protoc makes them; each after what it imports."""

Point = tuple[float, float, float]
"""x ahead, y to the left, z up, m."""
_POINT = struct.Struct("<3f")
_FLOAT32 = 7


def _field(name: str, offset: int) -> bytes:
    where = b"\x15" + struct.pack("<I", offset) if offset else b""
    return sized(5, sized(1, name.encode()) + where + bytes((0x18, _FLOAT32)))


_UPRIGHT = sized(3, sized(2, b"\x21" + struct.pack("<d", 1.0)))  # orientation w = 1
_STRIDE = b"\x25" + struct.pack("<I", _POINT.size)
_LAYOUT = _UPRIGHT + _STRIDE + _field("x", 0) + _field("y", 4) + _field("z", 8)


def cloud(time_ns: int, frame_id: str, points: Iterable[Point]) -> bytes:
    """Encodes a foxglove.PointCloud."""
    when = protobuf.timestamp(time_ns)
    data = b"".join(_POINT.pack(*point) for point in points)
    return b"".join(
        (
            b"\x0a",
            protobuf.varint(len(when)),
            when,
            sized(2, frame_id.encode()),
            _LAYOUT,
            sized(6, data),
        )
    )


def take_points(data: int | bytes) -> tuple[Point, ...]:
    """Decodes the points of a cloud of ours. Raises ProtobufError."""
    if isinstance(data, int) or len(data) % _POINT.size:
        raise ProtobufError(f"points that are not of {_POINT.size} bytes each")
    return tuple(_POINT.iter_unpack(data))
