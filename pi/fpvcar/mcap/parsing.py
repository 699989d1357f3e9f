"""MCAP's records from bytes. Pure; believes nothing that does not fit. See records.py.

Every `take_...` gets the body of one record and raises Damaged if it is none.
"""

import zlib
from collections.abc import Callable
from typing import NamedTuple

from fpvcar.mcap import records


class Damaged(ValueError):
    """Bytes that are not the record they say they are."""


class Fields:
    """Takes fields off a record's body. Every call raises Damaged at its end."""

    def __init__(self, body: bytes | memoryview) -> None:
        self._body, self.at = memoryview(body), 0

    @property
    def left(self) -> int:
        """Bytes that were not taken yet."""
        return len(self._body) - self.at

    def end(self) -> None:
        """Everything was taken."""
        if self.left:
            raise Damaged(f"{self.left} bytes more than a record has")

    def take(self, size: int) -> memoryview:
        """So many bytes."""
        if size > self.left:
            raise Damaged(f"{size} bytes where {self.left} are left")
        self.at += size
        return self._body[self.at - size : self.at]

    def number(self, size: int) -> int:
        """An unsigned number of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def text(self) -> str:
        """A text."""
        try:
            return str(self.take(self.number(4)), "utf-8")
        except UnicodeDecodeError:
            raise Damaged("text that is not UTF-8") from None

    def map(self) -> dict[str, str]:
        """Texts by name."""
        inner = Fields(self.take(self.number(4)))
        found = {}
        while inner.left:
            key = inner.text()
            found[key] = inner.text()
        return found


class Schema(NamedTuple):
    """A schema record."""

    number: int
    name: str
    coding: str
    data: bytes


class Channel(NamedTuple):
    """A channel record."""

    number: int
    schema: int
    topic: str
    coding: str


class Chunk(NamedTuple):
    """A chunk record; `records` are as they are stored. crc 0: there is none."""

    start_ns: int
    end_ns: int
    size: int
    crc: int
    compression: str
    records: memoryview


class Footer(NamedTuple):
    """A footer record; 0 for what the file does not have."""

    summary_at: int
    offsets_at: int
    crc: int


def take_schema(body: bytes | memoryview) -> Schema:
    """Raises Damaged."""
    of = Fields(body)
    number, name, coding = of.number(2), of.text(), of.text()
    found = Schema(number, name, coding, bytes(of.take(of.number(4))))
    of.end()
    return found


def take_channel(body: bytes | memoryview) -> Channel:
    """Raises Damaged."""
    of = Fields(body)
    found = Channel(of.number(2), of.number(2), of.text(), of.text())
    of.map()
    of.end()
    return found


def take_chunk(body: bytes | memoryview) -> Chunk:
    """Raises Damaged, also where its lengths do not agree with each other."""
    of = Fields(body)
    start_ns, end_ns, size, crc = records.CHUNK_FIXED.unpack(
        of.take(records.CHUNK_FIXED.size)
    )
    compression, stored = of.text(), of.number(8)
    if stored != of.left:
        raise Damaged(f"a chunk says {stored} bytes, its record {of.left}")
    if not compression and size != stored:
        raise Damaged(f"a chunk of {stored} bytes says that it is {size}")
    return Chunk(start_ns, end_ns, size, crc, compression, of.take(stored))


def take_index(body: bytes | memoryview) -> int:
    """The channel of a message index. Raises Damaged."""
    of = Fields(body)
    number, size = of.number(2), of.number(4)
    if size != of.left or size % 16:
        raise Damaged(f"a message index of {of.left} bytes says {size}")
    return number


def take_metadata(body: bytes | memoryview) -> tuple[str, dict[str, str]]:
    """Name and texts. Raises Damaged."""
    of = Fields(body)
    found = of.text(), of.map()
    of.end()
    return found


def take_counts(body: bytes | memoryview) -> records.Counts:
    """Statistics. Raises Damaged."""
    of = Fields(body)
    of.number(8)
    schemas = of.number(2)
    of.take(12)
    chunks, start_ns, end_ns = of.number(4), of.number(8), of.number(8)
    inner, messages = Fields(of.take(of.number(4))), {}
    while inner.left:
        number = inner.number(2)
        messages[number] = inner.number(8)
    of.end()
    return records.Counts(messages, schemas, chunks, start_ns, end_ns)


def take_footer(body: bytes | memoryview) -> Footer:
    """Raises Damaged."""
    if len(body) != records.FOOTER_FIXED.size:
        raise Damaged(f"a footer of {len(body)} bytes")
    return Footer(*records.FOOTER_FIXED.unpack(body))


def _check_attachment(body: bytes | memoryview) -> None:
    of = Fields(body)
    of.take(16)
    of.text()
    of.text()
    of.take(of.number(8))
    covered, crc = of.at, of.number(4)
    of.end()
    if crc not in (0, zlib.crc32(memoryview(body)[:covered])):
        raise Damaged("an attachment's CRC does not hold")


def _check_chunk_index(body: bytes | memoryview) -> None:
    of = Fields(body)
    of.take(32)
    of.take(of.number(4))
    of.number(8)
    of.text()
    of.take(16)
    of.end()


def _fixed(size: int, texts: int) -> Callable[[bytes | memoryview], None]:
    def check(body: bytes | memoryview) -> None:
        of = Fields(body)
        of.take(size)
        for _ in range(texts):
            of.text()
        of.end()

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
    """Is this body one of a known record's? Raises Damaged. Not for chunks.

    Of records that are unknown the format says: step over them.
    """
    known = _CHECKS.get(opcode)
    if known is not None:
        known(body)
