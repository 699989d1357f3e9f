"""Parser for MCAP records; records.py shows their layout. Pure; trusts no length.

Every `take_...` gets the body of one record and raises RecordError if it is invalid. Bytes behind
the known fields are ignored, as a later version of the format may append fields. In chunks and
their indexes they are errors: a damaged length could swallow the neighbours.
"""

import zlib
from collections.abc import Callable
from typing import NamedTuple

from fpvcar.recordings.mcap import records


class RecordError(ValueError):
    """Raised for bytes that are not a valid record."""


class RecordingError(ValueError):
    """Raised if a file is not a recording, or cannot be exported. The text gives the reason."""


class PackageMissing(RecordingError):
    """Raised when reading needs a package that is not installed; the text names it.
    The file may well be intact."""


class Fields:
    """Reader of a record's fields, one after another. Raises RecordError at a premature end."""

    def __init__(self, body: bytes | memoryview) -> None:
        self._body, self.at = memoryview(body), 0

    @property
    def left(self) -> int:
        """Number of bytes not read yet."""
        return len(self._body) - self.at

    def take(self, size: int) -> memoryview:
        """Read the next `size` bytes."""
        data = self._body[self.at : self.at + size]
        if len(data) < size:
            raise RecordError(f"{size} bytes where {self.left} are left")
        self.at += size
        return data

    def number(self, size: int) -> int:
        """Read an unsigned number of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def text(self) -> str:
        """Read a length-prefixed UTF-8 text."""
        try:
            return str(self.take(self.number(4)), "utf-8")
        except UnicodeDecodeError:
            raise RecordError("text that is not UTF-8") from None

    def map(self) -> dict[str, str]:
        """Read a map of names to texts."""
        inner = Fields(self.take(self.number(4)))
        texts = {}
        while inner.left:
            key = inner.text()
            texts[key] = inner.text()
        return texts


class Schema(NamedTuple):
    """Schema record: encoding of the messages of some channels."""

    number: int
    name: str
    coding: str
    data: bytes


class Channel(NamedTuple):
    """Channel record: a topic, and the number of its schema."""

    number: int
    schema: int
    topic: str
    coding: str


class Chunk(NamedTuple):
    """Chunk record; `records` are as stored. A crc of 0 means no CRC."""

    start_ns: int
    end_ns: int
    size: int
    crc: int
    compression: str
    records: memoryview


class Footer(NamedTuple):
    """Footer record; 0 for absent parts."""

    summary_at: int
    offsets_at: int
    crc: int


def take_schema(body: bytes | memoryview) -> Schema:
    """Parse a schema record. Raises RecordError."""
    fields = Fields(body)
    number, name, coding = fields.number(2), fields.text(), fields.text()
    schema = Schema(number, name, coding, bytes(fields.take(fields.number(4))))
    return schema


def take_channel(body: bytes | memoryview) -> Channel:
    """Parse a channel record. Raises RecordError."""
    fields = Fields(body)
    channel = Channel(fields.number(2), fields.number(2), fields.text(), fields.text())
    fields.map()
    return channel


def take_chunk(body: bytes | memoryview) -> Chunk:
    """Parse a chunk. Raises RecordError, also if its lengths are inconsistent."""
    fields = Fields(body)
    start_ns, end_ns, size, crc = records.CHUNK_FIXED.unpack(fields.take(records.CHUNK_FIXED.size))
    compression, stored = fields.text(), fields.number(8)
    if stored != fields.left:
        raise RecordError(f"a chunk of {fields.left} bytes (expected {stored})")
    if not compression and size != stored:
        raise RecordError(f"a chunk of {stored} bytes (expected {size})")
    return Chunk(start_ns, end_ns, size, crc, compression, fields.take(stored))


def take_index(body: bytes | memoryview) -> int:
    """Parse a message index; return its channel. Raises RecordError."""
    fields = Fields(body)
    number, size = fields.number(2), fields.number(4)
    if size != fields.left or size % 16:
        raise RecordError(f"a message index of {fields.left} bytes (expected {size})")
    return number


def take_metadata(body: bytes | memoryview) -> tuple[str, dict[str, str]]:
    """Parse a metadata record: its name and its texts. Raises RecordError."""
    fields = Fields(body)
    record = fields.text(), fields.map()
    return record


def take_counts(body: bytes | memoryview) -> records.Counts:
    """Parse the statistics record. Raises RecordError."""
    fields = Fields(body)
    fields.number(8)
    schemas = fields.number(2)
    fields.take(12)
    chunks, start_ns, end_ns = fields.number(4), fields.number(8), fields.number(8)
    inner, messages = Fields(fields.take(fields.number(4))), {}
    while inner.left:
        number = inner.number(2)
        messages[number] = inner.number(8)
    return records.Counts(messages, schemas, chunks, start_ns, end_ns)


def take_footer(body: bytes | memoryview) -> Footer:
    """Parse a footer record. Raises RecordError."""
    if len(body) != records.FOOTER_FIXED.size:
        raise RecordError(f"a footer of {len(body)} bytes")
    return Footer(*records.FOOTER_FIXED.unpack(body))


def _check_attachment(body: bytes | memoryview) -> None:
    fields = Fields(body)
    fields.take(16)
    fields.text()
    fields.text()
    fields.take(fields.number(8))
    covered, crc = fields.at, fields.number(4)
    if crc not in (0, zlib.crc32(memoryview(body)[:covered])):
        raise RecordError("an attachment's CRC is wrong")


def _check_chunk_index(body: bytes | memoryview) -> None:
    fields = Fields(body)
    fields.take(32)
    fields.take(fields.number(4))
    fields.number(8)
    fields.text()
    fields.take(16)


def _fixed(size: int, texts: int) -> Callable[[bytes | memoryview], None]:
    def check(body: bytes | memoryview) -> None:
        fields = Fields(body)
        fields.take(size)
        for _ in range(texts):
            fields.text()

    return check


def _message_size(body: bytes | memoryview) -> None:
    Fields(body).take(records.MESSAGE_FIXED)


_CHECKS: dict[int, Callable[[bytes | memoryview], object]] = {
    records.HEADER: _fixed(0, 2),
    records.FOOTER: take_footer,
    records.SCHEMA: take_schema,
    records.CHANNEL: take_channel,
    records.MESSAGE: _message_size,
    records.MESSAGE_INDEX: take_index,
    records.CHUNK_INDEX: _check_chunk_index,
    records.ATTACHMENT: _check_attachment,
    records.ATTACHMENT_INDEX: _fixed(40, 2),
    records.STATISTICS: take_counts,
    records.METADATA: take_metadata,
    records.METADATA_INDEX: _fixed(16, 1),
    records.SUMMARY_OFFSET: _fixed(17, 0),
    records.DATA_END: _fixed(4, 0),
}


def check(opcode: int, body: bytes | memoryview) -> None:
    """Raise RecordError if this is not a valid body for this opcode. Not for chunks.

    Records of unknown opcodes pass: the format tells readers to skip them.
    """
    validate = _CHECKS.get(opcode)
    if validate is not None:
        validate(body)
