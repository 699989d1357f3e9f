"""The two protobuf messages in a recording, by hand: four and six fields. Pure.

    foxglove.CompressedVideo: timestamp 1, frame_id 2, data 3, format 4
    foxglove.Log:             timestamp 1, level 2, message 3, name 4, file 5, line 6
    google.protobuf.Timestamp: seconds 1, nanos 2

The library would cost `run` 8 MB for them. Tests compare with it byte for byte.
https://protobuf.dev/programming-guides/encoding/
"""

from collections.abc import Iterator

TIMESTAMP_FILE = (
    b"\n\x1fgoogle/protobuf/timestamp.proto\x12\x0fgoogle.protobuf"
    b'";\n\tTimestamp\x12\x18\n\x07seconds\x18\x01 \x01(\x03R\x07seconds'
    b"\x12\x14\n\x05nanos\x18\x02 \x01(\x05R\x05nanos"
    b"B\x85\x01\n\x13com.google.protobufB\x0eTimestampProtoP\x01"
    b"Z2google.golang.org/protobuf/types/known/timestamppb\xf8\x01\x01"
    b"\xa2\x02\x03GPB\xaa\x02\x1eGoogle.Protobuf.WellKnownTypesb\x06proto3"
)
VIDEO_FILE = (
    b"\n\x1efoxglove/CompressedVideo.proto\x12\x08foxglove"
    b"\x1a\x1fgoogle/protobuf/timestamp.proto"
    b'"p\n\x0fCompressedVideo\x12-\n\ttimestamp\x18\x01 \x01(\x0b2\x1a'
    b".google.protobuf.Timestamp\x12\x10\n\x08frame_id\x18\x02 \x01(\t"
    b"\x12\x0c\n\x04data\x18\x03 \x01(\x0c\x12\x0e\n\x06format\x18\x04 \x01(\t"
    b"b\x06proto3"
)
LOG_FILE = (
    b"\n\x12foxglove/Log.proto\x12\x08foxglove\x1a\x1fgoogle/protobuf/timestamp.proto"
    b'"\xe1\x01\n\x03Log\x12-\n\ttimestamp\x18\x01 \x01(\x0b2\x1a'
    b'.google.protobuf.Timestamp\x12"\n\x05level\x18\x02 \x01(\x0e2\x13'
    b".foxglove.Log.Level\x12\x0f\n\x07message\x18\x03 \x01(\t"
    b"\x12\x0c\n\x04name\x18\x04 \x01(\t\x12\x0c\n\x04file\x18\x05 \x01(\t"
    b"\x12\x0c\n\x04line\x18\x06 \x01(\x07"
    b'"L\n\x05Level\x12\x0b\n\x07UNKNOWN\x10\x00\x12\t\n\x05DEBUG\x10\x01'
    b"\x12\x08\n\x04INFO\x10\x02\x12\x0b\n\x07WARNING\x10\x03\x12\t\n\x05ERROR\x10\x04"
    b"\x12\t\n\x05FATAL\x10\x05b\x06proto3"
)
"""FileDescriptorProto of each, as protoc makes them."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_MOST = 10
SECOND_NS = 1_000_000_000
_SMALL = [bytes((value,)) for value in range(0x80)]


class ProtobufError(ValueError):
    """Raised for bytes that are no message; the text says where."""


def varint(value: int) -> bytes:
    """Encodes an unsigned number: seven bits a byte, the low ones first."""
    if value <= 0x7F:
        return _SMALL[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def sized(number: int, data: bytes) -> bytes:
    """Encodes a field of bytes, text or a message; leaves out an empty one (proto3)."""
    if not data:
        return b""
    return varint(number << 3 | _BYTES) + varint(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return varint(number << 3 | _VARINT) + varint(value) if value else b""


def timestamp(time_ns: int) -> bytes:
    """Encodes a google.protobuf.Timestamp, not before 1970."""
    seconds, nanos = divmod(max(0, time_ns), SECOND_NS)
    return _number(1, seconds) + _number(2, nanos)


def video(time_ns: int, frame_id: str, data: bytes, coding: str) -> bytes:
    """Encodes a foxglove.CompressedVideo."""
    when = timestamp(time_ns)
    return b"".join(
        (
            # Present even when empty: a message field is not left out.
            b"\x0a",
            varint(len(when)),
            when,
            sized(2, frame_id.encode()),
            b"\x1a",
            varint(len(data)),
            data,
            sized(4, coding.encode()),
        )
    )


def log(time_ns: int, level: int, message: str, name: str) -> bytes:
    """Encodes a foxglove.Log without file and line."""
    when = timestamp(time_ns)
    return b"".join(
        (
            b"\x0a",
            varint(len(when)),
            when,
            _number(2, level),
            sized(3, message.encode()),
            sized(4, name.encode()),
        )
    )


def descriptor_set(*files: bytes) -> bytes:
    """Encodes a FileDescriptorSet, as MCAP wants for a schema."""
    return b"".join(sized(1, one) for one in files)


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields (number, value) of each field of a message. Raises ProtobufError."""
    at = 0
    while at < len(data):
        key, at = _take_varint(data, at)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise ProtobufError(f"field 0 at byte {at}")
        if kind == _VARINT:
            value, at = _take_varint(data, at)
            yield number, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind)
        if kind == _BYTES:
            size, at = _take_varint(data, at)
        if size is None:
            raise ProtobufError(f"wire type {kind} at byte {at}")
        if size > len(data) - at:
            raise ProtobufError(f"field {number}: {size} bytes, {len(data) - at} left")
        yield number, bytes(data[at : at + size])
        at += size


def _take_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count in range(_VARINT_MOST):
        if at + count >= len(data):
            raise ProtobufError(f"number cut at byte {at}")
        byte = data[at + count]
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return value & (1 << 64) - 1, at + count + 1
    raise ProtobufError(f"number of more than {_VARINT_MOST} bytes at byte {at}")


def take_timestamp(data: int | bytes) -> int:
    """Decodes a Timestamp: ns since 1970, less than 2**63. Raises ProtobufError."""
    if isinstance(data, int):
        raise ProtobufError("a number where a timestamp was expected")
    found = dict(fields(data))
    seconds, nanos = found.get(1, 0), found.get(2, 0)
    if isinstance(seconds, bytes) or isinstance(nanos, bytes):
        raise ProtobufError("bytes where a number was expected")
    time_ns = seconds * SECOND_NS + nanos
    if time_ns >= 1 << 63:  # before 1970 is as far away: two's complement
        raise ProtobufError(f"a time of {seconds} s (expected 1970 to 2262)")
    return time_ns


def take_text(data: int | bytes) -> str:
    """Decodes a text field. Raises ProtobufError."""
    if isinstance(data, int):
        raise ProtobufError("a number where text was expected")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ProtobufError("text that is not UTF-8") from None
