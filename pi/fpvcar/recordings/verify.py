"""Do the indexes of a whole file lead to its messages? No CRC of MCAP covers them.

Our reader does without; Foxglove and its like find by them what they show.

    chunk, message index of each of its channels, ...    summary: a line for each chunk
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from fpvcar.mcap import parsing, records
from fpvcar.mcap.chunks import inner_records
from fpvcar.mcap.walk import Damage, Found
from fpvcar.recordings.reader import Recording

_Entry = tuple[int, int]
"""log_ns, and where in the chunk's records the message is."""


class _Chunk(NamedTuple):
    """What a chunk says of itself, and what is in it."""

    at: int
    length: int
    start_ns: int
    end_ns: int
    messages: dict[int, list[_Entry]]


def astray(recording: Recording) -> Iterator[str]:
    """What is wrong with them, in words. Only of files that were closed and are whole:
    in the others a recovered file has new ones. Raises OSError."""
    chunks: dict[int, _Chunk] = {}
    last: _Chunk | None = None
    for one in recording.walk():
        if isinstance(one, Damage):
            continue
        if one.opcode == records.CHUNK:
            last = _chunk(one)
            chunks[one.at] = last
            yield from _times(last)
        elif one.opcode == records.MESSAGE_INDEX and last is not None:
            yield from _index(one, last)
    yield from _summary(recording, chunks)


def _chunk(found: Found) -> _Chunk:
    head, at = parsing.take_chunk(found.body), 0
    messages: dict[int, list[_Entry]] = {}
    for opcode, body in inner_records(found.inner):
        if opcode == records.MESSAGE:
            number = int.from_bytes(body[:2], "little")
            log_ns = int.from_bytes(body[6:14], "little")
            messages.setdefault(number, []).append((log_ns, at))
        at += records.HEAD.size + len(body)
    return _Chunk(found.at, found.length, head.start_ns, head.end_ns, messages)


def _times(chunk: _Chunk) -> Iterator[str]:
    times = [log_ns for some in chunk.messages.values() for log_ns, _ in some]
    if times and (min(times), max(times)) != (chunk.start_ns, chunk.end_ns):
        yield f"at byte {chunk.at}: a chunk's times are not those of its messages"


def _index(found: Found, chunk: _Chunk) -> Iterator[str]:
    number = parsing.take_index(found.body)
    entries = sorted(struct.iter_unpack("<QQ", found.body[6:]))
    if entries != sorted(chunk.messages.get(number, [])):
        yield f"at byte {found.at}: an index that is not of the chunk before it"


def _summary(recording: Recording, chunks: dict[int, _Chunk]) -> Iterator[str]:
    lines = [
        struct.unpack_from("<4Q", body)
        for opcode, body in recording.tail
        if opcode == records.CHUNK_INDEX
    ]
    for start_ns, end_ns, at, length in lines:
        chunk = chunks.get(at)
        if chunk is None or (length, start_ns, end_ns) != (
            chunk.length, chunk.start_ns, chunk.end_ns
        ):  # fmt: skip
            yield f"in the summary: no such chunk at byte {at}"
    if lines and len(lines) != len(chunks):
        yield f"in the summary: {len(lines)} of {len(chunks)} chunks"
