"""Summary at the end of a closed file."""

import zlib
from typing import NamedTuple

from fpvcar.recordings.mcap import parsing, records
from fpvcar.recordings.mcap.chunks import CHUNK_MOST, Source, inner_records
from fpvcar.recordings.mcap.parsing import Channel, RecordError, take_channel

_HEAD = records.HEAD
_DATA_END_SIZE = _HEAD.size + 4


class Tail(NamedTuple):
    """End of a closed file: position of the data end, the record there, and the
    summary's records as (opcode, body), with its channels parsed."""

    at: int
    data_end: bytes
    records: list[tuple[int, bytes]]
    channels: list[Channel]


def tail_of(source: Source, at_instead: int | None = None) -> Tail | None:
    """Read the summary of a closed file; None if it is absent or invalid.

    `at_instead`: its position, if it differs from the footer's.
    """
    ending_size = records.FOOTER_SIZE + len(records.MAGIC)
    at = source.size - ending_size
    end = source.read(at, ending_size) if at >= len(records.MAGIC) else b""
    if end[records.FOOTER_SIZE :] != records.MAGIC:
        return None
    opcode, size = _HEAD.unpack_from(end)
    if (opcode, size) != (records.FOOTER, records.FOOTER_SIZE - _HEAD.size):
        return None
    footer = parsing.take_footer(end[_HEAD.size : records.FOOTER_SIZE])
    start = (footer.summary_at or at) if at_instead is None else at_instead
    if not len(records.MAGIC) + _DATA_END_SIZE <= start <= at or at - start > CHUNK_MOST:
        return None
    data_end = source.read(start - _DATA_END_SIZE, _DATA_END_SIZE)
    body = source.read(start, at - start)
    crc = zlib.crc32(end[: records.FOOTER_SIZE - 4], zlib.crc32(body))
    if footer.crc not in (0, crc):
        return None
    try:
        summary = [(op, bytes(content)) for op, content in inner_records(memoryview(body))]
        channels = [take_channel(content) for op, content in summary if op == records.CHANNEL]
        for opcode, content in summary:
            if opcode != records.CHANNEL:
                parsing.check(opcode, content)
    except RecordError:
        return None
    return Tail(start - _DATA_END_SIZE, data_end, summary, channels)
