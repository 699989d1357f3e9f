"""Verification of the data not covered by chunk CRCs, for `fpvcar log`.

    metadata           equals the /recording message in the chunks
    data end           has no CRC, as fpvcar writes it, or the right one
    message indexes    each refers to the messages of the chunk before it
    chunk indexes      each entry of the summary is a chunk of the file

No MCAP CRC covers these. Our reader does not need the indexes; Foxglove and similar viewers use
them to find data.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from fpvcar.recordings import messages
from fpvcar.recordings.mcap import parsing, records
from fpvcar.recordings.mcap.chunks import inner_records
from fpvcar.recordings.mcap.walk import Damage, Record
from fpvcar.recordings.reader import Recording, about_of

_Entry = tuple[int, int]
"""log_ns and offset of a message in the chunk's records."""


class _Chunk(NamedTuple):
    """Header fields and messages of a chunk."""

    at: int
    length: int
    start_ns: int
    end_ns: int
    messages: dict[int, list[_Entry]]


def metadata_faults(recording: Recording) -> Iterator[str]:
    """Yield problems with metadata and data end of a complete recording."""
    index = any(
        opcode == records.METADATA_INDEX and _index_name(body) == messages.METADATA
        for opcode, body in recording.tail
    )
    if recording.about is not None and (index or recording.metadata):
        if about_of(recording.metadata) != recording.about:
            yield "its metadata differs from /recording"
    if recording.data_end != records.data_end():
        head = records.HEAD.size
        if recording.data_end[:head] == records.data_end()[:head]:
            if not recording.data_crc_holds():
                yield "its data end has a wrong CRC"
        else:
            yield "no data end before the summary"


def _index_name(body: bytes) -> str:
    fields = parsing.Fields(body)
    fields.take(16)
    return fields.text()


def index_faults(recording: Recording) -> Iterator[str]:
    """Yield the wrong indexes of a complete recording. Raises OSError."""
    chunks: dict[int, _Chunk] = {}
    last: _Chunk | None = None
    for record in recording.walk():
        if isinstance(record, Damage):
            continue
        if record.opcode == records.CHUNK:
            last = _chunk(record)
            chunks[record.at] = last
            yield from _times(last)
        elif record.opcode == records.MESSAGE_INDEX and last is not None:
            yield from _index(record, last)
    yield from _summary(recording, chunks)


def _chunk(record: Record) -> _Chunk:
    head, at = parsing.take_chunk(record.body), 0
    entries: dict[int, list[_Entry]] = {}
    for opcode, body in inner_records(record.inner):
        if opcode == records.MESSAGE:
            number = int.from_bytes(body[:2], "little")
            log_ns = int.from_bytes(body[6:14], "little")
            entries.setdefault(number, []).append((log_ns, at))
        at += records.HEAD.size + len(body)
    return _Chunk(record.at, record.length, head.start_ns, head.end_ns, entries)


def _times(chunk: _Chunk) -> Iterator[str]:
    times = [log_ns for entries in chunk.messages.values() for log_ns, _ in entries]
    if times and (min(times), max(times)) != (chunk.start_ns, chunk.end_ns):
        yield f"at byte {chunk.at}: a chunk's times are not those of its messages"


def _index(record: Record, chunk: _Chunk) -> Iterator[str]:
    number = parsing.take_index(record.body)
    entries = sorted(struct.iter_unpack("<QQ", record.body[6:]))
    if entries != sorted(chunk.messages.get(number, [])):
        yield f"at byte {record.at}: an index that is not of the chunk before it"


def _summary(recording: Recording, chunks: dict[int, _Chunk]) -> Iterator[str]:
    lines = [
        struct.unpack_from("<4Q", body)
        for opcode, body in recording.tail
        if opcode == records.CHUNK_INDEX
    ]
    for start_ns, end_ns, at, length in lines:
        chunk = chunks.get(at)
        if chunk is None or (length, start_ns, end_ns) != (
            chunk.length,
            chunk.start_ns,
            chunk.end_ns,
        ):
            yield f"in the summary: no such chunk at byte {at}"
    listed = {at for _, _, at, _ in lines}
    filled = {at for at, chunk in chunks.items() if chunk.messages}  # others may be left out
    if lines and not filled <= listed:
        yield f"in the summary: {len(lines)} of {len(chunks)} chunks"
    for opcode, body in recording.tail:
        if opcode == records.CHUNK_INDEX:
            yield from _missing_indexes(recording, body)


def _missing_indexes(recording: Recording, body: bytes) -> Iterator[str]:
    """Compare an entry's positions of message indexes with the records there."""
    fields = parsing.Fields(body)
    fields.take(32)
    places = fields.take(fields.number(4))
    for number, at in struct.iter_unpack("<HQ", places):
        head = recording.head_at(at)
        if head != (records.MESSAGE_INDEX, number):
            yield f"in the summary: no index of channel {number} at byte {at}"
