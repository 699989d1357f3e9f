"""foxglove.FrameTransforms by hand: where parts are on the car. Pure.

FrameTransforms: transforms 1
FrameTransform:  timestamp 1, parent_frame_id 2, child_frame_id 3, translation 4,
                 rotation 5
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from fpvcar.mcap import cloud, protobuf
from fpvcar.mcap.cloud import Point
from fpvcar.mcap.protobuf import ProtobufError, fields, sized

_TRANSFORM_FILE = (
    b"\n\x1dfoxglove/FrameTransform.proto\x12\x08foxglove"
    b"\x1a\x19foxglove/Quaternion.proto\x1a\x16foxglove/Vector3.proto"
    b'\x1a\x1fgoogle/protobuf/timestamp.proto"\xc0\x01\n\x0eFrameTransform'
    b"\x12-\n\ttimestamp\x18\x01 \x01(\x0b2\x1a.google.protobuf.Timestamp"
    b"\x12\x17\n\x0fparent_frame_id\x18\x02 \x01(\t"
    b"\x12\x16\n\x0echild_frame_id\x18\x03 \x01(\t"
    b"\x12&\n\x0btranslation\x18\x04 \x01(\x0b2\x11.foxglove.Vector3"
    b"\x12&\n\x08rotation\x18\x05 \x01(\x0b2\x14.foxglove.Quaternionb\x06proto3"
)
_TRANSFORMS_FILE = (
    b"\n\x1efoxglove/FrameTransforms.proto\x12\x08foxglove"
    b'\x1a\x1dfoxglove/FrameTransform.proto"?\n\x0fFrameTransforms'
    b"\x12,\n\ntransforms\x18\x01 \x03(\x0b2\x18.foxglove.FrameTransformb\x06proto3"
)
FILES = (
    protobuf.TIMESTAMP_FILE,
    cloud.VECTOR_FILE,
    cloud.QUATERNION_FILE,
    _TRANSFORM_FILE,
    _TRANSFORMS_FILE,
)
"""FileDescriptorProto of each, as protoc makes them; each after what it imports."""

Quaternion = tuple[float, float, float, float]
"""x, y, z, w."""
_DOUBLE, _FIXED64 = struct.Struct("<d"), 1


class Transform(NamedTuple):
    """Place of a part: the frame `child` in the frame `parent`."""

    parent: str
    child: str
    translation: Point
    rotation: Quaternion


def transforms(time_ns: int, each: Iterable[Transform]) -> bytes:
    """Encode a foxglove.FrameTransforms."""
    when = protobuf.timestamp(time_ns)
    return b"".join(
        _message(
            1,
            _message(1, when)
            + sized(2, one.parent.encode())
            + sized(3, one.child.encode())
            + _message(4, _doubles(one.translation))
            + _message(5, _doubles(one.rotation)),
        )
        for one in each
    )


def _message(number: int, data: bytes) -> bytes:
    """Encode a message field, which is there even if it is empty."""
    return protobuf.varint(number << 3 | 2) + protobuf.varint(len(data)) + data


def _doubles(values: Iterable[float]) -> bytes:
    return b"".join(
        protobuf.varint(number << 3 | _FIXED64) + _DOUBLE.pack(value)
        for number, value in enumerate(values, 1)
        if value
    )


def take_transforms(data: bytes) -> tuple[int, tuple[Transform, ...]]:
    """Decode a foxglove.FrameTransforms; return its time in ns since 1970, too. Raises
    ProtobufError."""
    time_ns, found = 0, []
    for number, value in fields(data):
        if number != 1 or isinstance(value, int):
            raise ProtobufError(f"field {number} where a transform was expected")
        parts = dict(fields(value))
        time_ns = protobuf.take_timestamp(parts.get(1, b""))
        x, y, z, _ = _take_doubles(parts.get(4, b""))
        made = Transform(
            protobuf.take_text(parts.get(2, b"")),
            protobuf.take_text(parts.get(3, b"")),
            (x, y, z),
            _take_doubles(parts.get(5, b"")),
        )
        found.append(made)
    return time_ns, tuple(found)


def _take_doubles(data: int | bytes) -> Quaternion:
    """Decode up to four fields of double."""
    values = [0.0] * 4
    for number, value in fields(data) if isinstance(data, bytes) else [(0, 0)]:
        if isinstance(value, int) or len(value) != _DOUBLE.size or number > 4:
            raise ProtobufError(f"field {number} where a double was expected")
        (values[number - 1],) = _DOUBLE.unpack(value)
    x, y, z, w = values
    return x, y, z, w
