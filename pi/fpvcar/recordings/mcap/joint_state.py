"""Hand-written codec for sensor_msgs/JointState of ROS 2, in CDR. Pure.

    header (sec int32, nanosec uint32, frame_id string), name string[], position, velocity and
    effort float64[]

Little-endian; each value is aligned to its size, counted from the end of the four-byte
encapsulation header. A string has its length before it, and a zero byte at its end. Of the schemas
that Rerun (0.41) plots as curves without a setting, this is the only one with several named values.
Velocity and effort stay empty.
"""

import struct
from collections.abc import Sequence

from fpvcar.recordings.mcap.parsing import RecordError

SCHEMA = "sensor_msgs/msg/JointState"
_RULE = "=" * 80
DEFINITION = f"""\
std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
{_RULE}
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
{_RULE}
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
""".encode()
_LITTLE_ENDIAN = bytes((0, 1, 0, 0))
_S = 1_000_000_000
_WORD = struct.Struct("<I")


def joint_state(time_ns: int, names: Sequence[str], positions: Sequence[float]) -> bytes:
    """Encode values with their names; NaN for an unknown value."""
    body = bytearray(struct.pack("<iI", *divmod(time_ns, _S)) + _text(""))
    body += bytes(-len(body) % 4) + _WORD.pack(len(names))
    for name in names:
        body += bytes(-len(body) % 4) + _text(name)
    body += bytes(-len(body) % 4) + _WORD.pack(len(positions))
    body += bytes(-len(body) % 8) + struct.pack(f"<{len(positions)}d", *positions)
    return _LITTLE_ENDIAN + body + bytes(2 * _WORD.size)


def take_joint_state(data: bytes) -> tuple[int, tuple[str, ...], tuple[float, ...]]:
    """Decode time in ns, names and positions. Raises RecordError."""
    body = data[len(_LITTLE_ENDIAN) :]
    try:
        if not data.startswith(_LITTLE_ENDIAN):
            raise RecordError("a message that is not little-endian CDR")
        seconds, nanoseconds = struct.unpack_from("<iI", body)
        _, at = _take_text(body, 8)
        (count,) = _WORD.unpack_from(body, at + -at % 4)
        at += -at % 4 + _WORD.size
        names = []
        for _ in range(count):
            name, at = _take_text(body, at)
            names.append(name)
        (count,) = _WORD.unpack_from(body, at + -at % 4)
        at += -at % 4 + _WORD.size
        positions = struct.unpack_from(f"<{count}d", body, at + -at % 8)
    except (struct.error, UnicodeError, OverflowError) as fault:
        raise RecordError(f"a joint state that is cut or damaged: {fault}") from None
    return seconds * _S + nanoseconds, tuple(names), positions


def _text(text: str) -> bytes:
    raw = text.encode() + b"\0"
    return _WORD.pack(len(raw)) + raw


def _take_text(body: bytes, at: int) -> tuple[str, int]:
    at += -at % 4
    (size,) = _WORD.unpack_from(body, at)
    end = at + _WORD.size + size
    if not size or end > len(body):
        raise RecordError(f"a text of {size} bytes, {len(body) - at} are left")
    return body[at + _WORD.size : end - 1].decode(), end
