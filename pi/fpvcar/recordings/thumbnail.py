"""Reads the first picture of a recording, for a list, and no more of it than that."""

from collections.abc import Iterable
from pathlib import Path

from fpvcar.mcap import parsing, records
from fpvcar.mcap.chunks import FileSource, inner_records
from fpvcar.mcap.walk import Damage, Found, Walk
from fpvcar.recordings import messages
from fpvcar.recordings.pictures import Frame
from fpvcar.video import h264

FIRST_CHUNKS = 16
"""Chunks in which a key frame is looked for; one is a second at most."""


def first_picture(path: Path) -> Frame | None:
    """Reads a file up to its first key frame, for a list.

    None if none comes within FIRST_CHUNKS. Raises OSError.
    """
    source, number, chunks = FileSource(path), None, 0
    try:
        for step in Walk(source, source.size).steps():
            if isinstance(step, Damage):
                continue
            chunks += step.opcode == records.CHUNK
            if chunks > FIRST_CHUNKS:
                break
            for opcode, body in _inside(step):
                if opcode == records.CHANNEL:
                    channel = parsing.take_channel(body)
                    number = (
                        channel.number if channel.topic == messages.CAMERA else number
                    )
                elif (
                    opcode == records.MESSAGE
                    and int.from_bytes(body[:2], "little") == number
                ):
                    frame = _key_frame(body)
                    if frame is not None:
                        return frame
    finally:
        source.close()
    return None


def _inside(found: Found) -> Iterable[tuple[int, bytes | memoryview]]:
    if found.opcode == records.CHUNK:
        return inner_records(found.inner)
    return [(found.opcode, found.body)]


def _key_frame(message: bytes | memoryview) -> Frame | None:
    try:
        picture = messages.decode(
            messages.CAMERA, bytes(message[records.MESSAGE_FIXED :])
        )
    except messages.FormatError:
        return None
    if not isinstance(picture, messages.Picture) or not h264.is_key(picture.unit):
        return None
    return Frame(picture.capture_ns, True, picture.unit)
