"""Recovery of damaged or unclosed files. Pure except for its source.

    rewritten    copies the good chunks into a new file
    Ending       closes the file in place

Good chunks are copied unchanged; their indexes and the summary are rebuilt.
"""

import struct
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from fpvcar.recordings import codec, messages
from fpvcar.recordings.mcap import parsing, records
from fpvcar.recordings.mcap.chunks import good_chunk, inner_records
from fpvcar.recordings.mcap.parsing import RecordError
from fpvcar.recordings.mcap.records import ChunkPlace, Counts
from fpvcar.recordings.mcap.walk import Damage, Record
from fpvcar.recordings.reader import Recording

LIBRARY = "fpvcar recover"
TIMES = struct.Struct("<QQ")
"""First and last message time of a chunk in ns, at the start of its record's body."""


class _Chunk(NamedTuple):
    """Chunk's entry in the summary, its message indexes, and its message counts."""

    place: ChunkPlace
    indexes: list[bytes]
    counts: dict[int, int]


def _chunk(at: int, body: bytes, inner: memoryview) -> _Chunk:
    """Index a good chunk that begins at offset `at`."""
    index: dict[int, list[int]] = {}
    offset = 0
    for opcode, record in inner_records(inner):
        if opcode == records.MESSAGE:
            number = int.from_bytes(record[:2], "little")
            log_ns = int.from_bytes(record[6:14], "little")
            index.setdefault(number, []).extend((log_ns, offset))
        offset += records.HEAD.size + len(record)
    times = [log_ns for entries in index.values() for log_ns in entries[::2]]
    chunk = parsing.take_chunk(body)
    length = records.HEAD.size + len(body)
    index_at, indexes, end = {}, [], at + length
    for number, entries in index.items():
        index_at[number] = end
        indexes.append(records.message_index(number, entries))
        end += len(indexes[-1])
    place = ChunkPlace(
        at,
        length,
        min(times, default=0),
        max(times, default=0),
        index_at,
        end - at - length,
        len(chunk.records),
        chunk.size,
        chunk.compression,
    )
    counts = {number: len(entries) // 2 for number, entries in index.items()}
    return _Chunk(place, indexes, counts)


class _Summary:
    """Summary after a file's data, built chunk by chunk.

    `schemas` and `channels` contain complete records by number. `metadata` is the index record of
    the only metadata record.
    """

    def __init__(self) -> None:
        self.schemas: dict[int, bytes] = {}
        self.channels: dict[int, bytes] = {}
        self.metadata = b""
        self.counts: Counter[int] = Counter()
        self.places: list[ChunkPlace] = []

    def add(self, chunk: _Chunk) -> None:
        """Add a chunk that contains messages."""
        self.places.append(chunk.place)
        self.counts.update(chunk.counts)

    def ending(self, at: int) -> bytes:
        """Encode data end, summary and footer of a file whose data end at offset `at`."""
        counts = Counts(
            {number: self.counts[number] for number in self.channels},
            len(self.schemas),
            len(self.places),
            min((place.start_ns for place in self.places), default=0),
            max((place.end_ns for place in self.places), default=0),
            1 if self.metadata else 0,
        )
        end = records.data_end()
        return end + records.summary(
            at + len(end),
            (
                (records.SCHEMA, b"".join(self.schemas.values())),
                (records.CHANNEL, b"".join(self.channels.values())),
                (records.STATISTICS, records.statistics(counts)),
                (records.CHUNK_INDEX, b"".join(map(records.chunk_index, self.places))),
                (records.METADATA_INDEX, self.metadata),
            ),
        )


def rewritten(recording: Recording) -> Iterator[bytes]:
    """Yield the clean file, piece by piece. Raises OSError if the source cannot be read.

    Schemas and channels are also written at the beginning: the chunk with them may be lost.
    """
    summary = _Summary()
    for schema in recording.schemas.values():
        summary.schemas[schema.number] = records.schema(*schema)
    for channel in recording.channels.values():
        summary.channels[channel.number] = records.channel(*channel)
    head = records.MAGIC + records.header(LIBRARY)
    about = recording.about
    if about is not None:
        data = codec.encode_metadata(about)
        summary.metadata = records.metadata_index(len(head), len(data), messages.METADATA)
        head += data
    head += b"".join([*summary.schemas.values(), *summary.channels.values()])
    yield head
    size = len(head)
    for span in recording.chunks:
        data = recording.chunk_bytes(span)
        if span.loose:
            data = records.chunk_head(span.start_ns, span.end_ns, data) + data
        body = data[records.HEAD.size :]
        try:
            inner = good_chunk(body)
        except RecordError:  # valid in the first scan: the card is failing
            continue
        chunk = _chunk(size, body, inner)
        if chunk.counts:
            summary.add(chunk)
            yield from (_dated(data, chunk.place), *chunk.indexes)
            size += len(data) + chunk.place.index_length
    yield summary.ending(size)


def _dated(chunk: bytes, place: ChunkPlace) -> bytes:
    """Set the message times in a chunk's header, as no CRC covers them there."""
    at = records.HEAD.size
    return chunk[:at] + TIMES.pack(place.start_ns, place.end_ns) + chunk[at + TIMES.size :]


class Ending:
    """Collector of the missing end of an unclosed file during a walk through it.

    The caller then truncates the file at `cut` and appends `appended()`. Intact data is never
    written again: if power fails at any time, the chunks stay in place.
    """

    def __init__(self) -> None:
        self.cut = 0
        self.chunks = 0
        """Number of good chunks."""
        self.damaged = False
        """True if the file contains an invalid record other than a truncated one."""
        self._summary = _Summary()
        self._due: list[bytes] = []
        """Indexes of the last chunk that the walk has not reached yet."""
        self._behind = False

    @property
    def readable(self) -> bool:
        """Return whether the channel of each message is known. Only the first chunks define
        channels."""
        return self._summary.counts.keys() <= self._summary.channels.keys()

    def note(self, step: Record | Damage) -> None:
        """Process the next step of the walk."""
        if isinstance(step, Record) and step.opcode == records.CHUNK:
            self._behind = False  # the supposed end was not the end
            self._give_up_indexes()
            self._note_chunk(step)
        elif self._behind:  # a truncated summary
            return
        elif isinstance(step, Damage):
            if step.cut:
                self.cut = step.at
                return
            self.damaged = True
            self._give_up_indexes()
        elif step.opcode == records.DATA_END:
            self.cut, self._behind = step.at, True
            return
        else:
            self._note_between(step)
        self.cut = step.at + step.length

    def appended(self) -> bytes:
        """Encode the bytes to append at `cut`."""
        indexes = b"".join(self._due)
        return indexes + self._summary.ending(self.cut + len(indexes))

    def _note_chunk(self, record: Record) -> None:
        self.chunks += 1
        for opcode, body in inner_records(record.inner):
            if opcode == records.SCHEMA:
                schema = parsing.take_schema(body)
                self._summary.schemas[schema.number] = records.schema(*schema)
            elif opcode == records.CHANNEL:
                channel = parsing.take_channel(body)
                self._summary.channels[channel.number] = records.channel(*channel)
        chunk = _chunk(record.at, record.body, record.inner)
        if chunk.counts:
            self._summary.add(chunk)
            self._due = chunk.indexes

    def _note_between(self, record: Record) -> None:
        if record.opcode == records.METADATA:
            name, _ = parsing.take_metadata(record.body)
            if name == messages.METADATA:
                self._summary.metadata = records.metadata_index(record.at, record.length, name)
        if self._due and records.record(record.opcode, record.body) == self._due[0]:
            del self._due[0]
        else:
            self._give_up_indexes()

    def _give_up_indexes(self) -> None:
        """List the last chunk without its indexes, as they do not follow it.

        Readers can find the chunk without indexes.
        """
        if self._due:
            places, self._due = self._summary.places, []
            places[-1] = places[-1]._replace(index_at={}, index_length=0)
