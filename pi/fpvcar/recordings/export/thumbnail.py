"""Thumbnail of a recording: find its first key frame and read no further."""

from collections.abc import Iterable
from pathlib import Path

from fpvcar.recordings import codec, messages
from fpvcar.recordings.export.pictures import Frame
from fpvcar.recordings.mcap import parsing, records
from fpvcar.recordings.mcap.chunks import Source, inner_records
from fpvcar.recordings.mcap.walk import Damage, Record, Walk
from fpvcar.runtime.units import MIB, SECOND_NS
from fpvcar.video import h264

FIRST_BYTES = 32 * MIB
"""Search limit for a key frame in bytes: more than a minute of recording.

Recordings without a camera have few bytes.
"""


def first_picture(path: Path, from_s: float = 0.0) -> Frame | None:
    """Return the first key frame recorded at least `from_s` after the file's start.

    Returns None if FIRST_BYTES contain no such frame. Raises OSError.
    """
    source, number, from_ns = Source(path), None, -1
    try:
        for step in Walk(source, min(source.size, FIRST_BYTES)).steps():
            if isinstance(step, Damage):
                continue
            if step.opcode == records.CHUNK and from_ns < 0:
                began_ns = parsing.take_chunk(step.body).start_ns
                from_ns = began_ns + round(from_s * SECOND_NS)
            for opcode, body in _inside(step):
                if opcode == records.CHANNEL:
                    channel = parsing.take_channel(body)
                    number = channel.number if channel.topic == messages.CAMERA else number
                elif (
                    opcode == records.MESSAGE
                    and int.from_bytes(body[:2], "little") == number
                    and int.from_bytes(body[6:14], "little") >= from_ns
                ):
                    frame = _key_frame(body)
                    if frame is not None:
                        return frame
    finally:
        source.close()
    return None


def _inside(record: Record) -> Iterable[tuple[int, bytes | memoryview]]:
    if record.opcode == records.CHUNK:
        return inner_records(record.inner)
    return [(record.opcode, record.body)]


def _key_frame(message: bytes | memoryview) -> Frame | None:
    try:
        picture = codec.decode(messages.CAMERA, bytes(message[records.MESSAGE_FIXED :]))
    except messages.FormatError:
        return None
    if not isinstance(picture, messages.Picture) or not h264.is_key(picture.unit):
        return None
    return Frame(picture.capture_ns, True, picture.unit)
