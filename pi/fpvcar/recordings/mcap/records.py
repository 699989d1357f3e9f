"""Encoder for MCAP records; parsing.py decodes them. Pure. https://mcap.dev/spec

    magic, header, metadata,
      chunk, its message indexes, chunk, its message indexes, ...
    data end, summary: schemas, channels, statistics, chunk indexes, offsets
    footer, magic

    | opcode u8 | length u64 | body |     text: | bytes u32 | UTF-8 |     little-endian

Only a chunk's records and the summary have a CRC; a reader must validate all other data itself.
"""

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

MAGIC = b"\x89MCAP0\r\n"
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK = 1, 2, 3, 4, 5, 6
MESSAGE_INDEX, CHUNK_INDEX, ATTACHMENT, ATTACHMENT_INDEX = 7, 8, 9, 10
STATISTICS, METADATA, METADATA_INDEX, SUMMARY_OFFSET, DATA_END = 11, 12, 13, 14, 15
OPCODES = range(HEADER, DATA_END + 1)
HEAD = struct.Struct("<BQ")
MESSAGE_HEAD = struct.Struct("<BQHIQQ")
MESSAGE_FIXED = MESSAGE_HEAD.size - HEAD.size
"""Bytes of a message's body before its data."""
CHUNK_FIXED = struct.Struct("<QQQI")
FOOTER_FIXED = struct.Struct("<QQI")
FOOTER_SIZE = HEAD.size + FOOTER_FIXED.size


def record(opcode: int, body: bytes) -> bytes:
    """Encode a record from its opcode and body."""
    return HEAD.pack(opcode, len(body)) + body


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data


def _map(entries: Mapping[str, str]) -> bytes:
    body = b"".join(_text(key) + _text(value) for key, value in entries.items())
    return struct.pack("<I", len(body)) + body


def header(library: str) -> bytes:
    """Encode the header record, with an empty profile."""
    return record(HEADER, _text("") + _text(library))


def schema(number: int, name: str, coding: str, data: bytes) -> bytes:
    """Encode a schema; `number` must not be 0."""
    body = struct.pack("<H", number) + _text(name) + _text(coding)
    return record(SCHEMA, body + struct.pack("<I", len(data)) + data)


def channel(number: int, schema_number: int, topic: str, coding: str) -> bytes:
    """Encode a channel: a topic and the encoding of its messages."""
    body = struct.pack("<HH", number, schema_number) + _text(topic) + _text(coding)
    return record(CHANNEL, body + _map({}))


def message(number: int, sequence: int, log_ns: int, publish_ns: int, data: bytes) -> bytes:
    """Encode a message on channel `number`."""
    head = MESSAGE_HEAD.pack(
        MESSAGE, MESSAGE_FIXED + len(data), number, sequence & 0xFFFFFFFF, log_ns, publish_ns
    )
    return head + data


def chunk_head(start_ns: int, end_ns: int, body: bytes) -> bytes:
    """Encode the head of an uncompressed chunk, up to its records."""
    size = len(body)
    head = CHUNK_FIXED.pack(start_ns, end_ns, size, zlib.crc32(body)) + _text("")
    length = len(head) + 8 + size
    return HEAD.pack(CHUNK, length) + head + struct.pack("<Q", size)


CHUNK_OVERHEAD = HEAD.size + CHUNK_FIXED.size + 4 + 8
"""Bytes of a chunk without compression before its records."""


def message_index(number: int, entries: Sequence[int]) -> bytes:
    """Encode the positions of a channel's messages in the previous chunk: log_ns,
    offset, and so on."""
    body = struct.pack(f"<HI{len(entries)}Q", number, 8 * len(entries), *entries)
    return record(MESSAGE_INDEX, body)


class ChunkPlace(NamedTuple):
    """Chunk as listed in the summary. `index_at` has the positions of its message
    indexes by channel; `stored` bytes of records are `size` bytes uncompressed."""

    at: int
    length: int
    start_ns: int
    end_ns: int
    index_at: dict[int, int]
    index_length: int
    stored: int
    size: int
    compression: str = ""


def chunk_index(place: ChunkPlace) -> bytes:
    """Encode a chunk's entry in the summary."""
    offsets = b"".join(struct.pack("<HQ", *entry) for entry in place.index_at.items())
    body = struct.pack("<4QI", place.start_ns, place.end_ns, place.at, place.length, len(offsets))
    body += offsets + struct.pack("<Q", place.index_length) + _text(place.compression)
    return record(CHUNK_INDEX, body + struct.pack("<QQ", place.stored, place.size))


def metadata(name: str, entries: Mapping[str, str]) -> bytes:
    """Encode a metadata record with the given entries."""
    return record(METADATA, _text(name) + _map(entries))


def metadata_index(at: int, length: int, name: str) -> bytes:
    """Encode the position of a metadata record."""
    return record(METADATA_INDEX, struct.pack("<QQ", at, length) + _text(name))


class Counts(NamedTuple):
    """Statistics of a file; `messages` by channel."""

    messages: dict[int, int]
    schemas: int
    chunks: int
    start_ns: int
    end_ns: int
    metadata: int = 1
    """Number of metadata records; fpvcar writes one."""


def statistics(counts: Counts) -> bytes:
    """Encode the statistics of a file."""
    body = struct.pack(
        "<QHIIIIQQI",
        sum(counts.messages.values()),
        counts.schemas,
        len(counts.messages),
        0,
        counts.metadata,
        counts.chunks,
        counts.start_ns,
        counts.end_ns,
        10 * len(counts.messages),
    )
    entries = b"".join(struct.pack("<HQ", *entry) for entry in counts.messages.items())
    return record(STATISTICS, body + entries)


def data_end() -> bytes:
    """Encode the end of the data without its CRC, as the chunks have their own."""
    return record(DATA_END, struct.pack("<I", 0))


def summary(at: int, groups: Iterable[tuple[int, bytes]]) -> bytes:
    """Encode everything after the data end at `at`: summary, offsets, footer, magic."""
    body, offsets = b"", b""
    for opcode, group in groups:
        if group:
            position = struct.pack("<BQQ", opcode, at + len(body), len(group))
            offsets += record(SUMMARY_OFFSET, position)
            body += group
    offsets_at, body = at + len(body), body + offsets
    head = HEAD.pack(FOOTER, FOOTER_FIXED.size) + struct.pack("<QQ", at, offsets_at)
    return body + head + struct.pack("<I", zlib.crc32(body + head)) + MAGIC
