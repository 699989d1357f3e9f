"""Iteration over a file record by record, skipping damaged parts. Trusts no length.

valid record   -> Record, and on to the next
invalid record -> Damage, and on to the next chunk with a valid CRC
"""

from collections.abc import Iterator
from typing import NamedTuple

from fpvcar.recordings.mcap import parsing, records
from fpvcar.recordings.mcap.chunks import CHUNK_MOST, Source, good_chunk, known_chunk
from fpvcar.recordings.mcap.parsing import RecordError

WINDOW = 1024 * 1024
_HEAD = records.HEAD
_CHUNK_HEAD = records.CHUNK_OVERHEAD


class Damage(NamedTuple):
    """Unusable bytes, with the reason."""

    at: int
    length: int
    reason: str
    cut: bool = False
    """The file ends in the middle of this record."""
    repeated: bool = False
    """An identical chunk precedes it: no data is lost."""


class Record(NamedTuple):
    """Valid record; `inner` are a chunk's records, uncompressed."""

    at: int
    opcode: int
    length: int
    body: bytes
    inner: memoryview


class Walk:
    """Iteration over the records of a source."""

    def __init__(self, source: Source, end: int) -> None:
        """`end` is the end of the data, at most the source's size."""
        self._source, self._end = source, end

    def steps(self) -> Iterator[Record | Damage]:
        """Yield every record up to `end`, and the damage between them. Raises OSError."""
        at = len(records.MAGIC)
        if self._source.read(0, at) != records.MAGIC:
            first = self._next_chunk(0)
            yield Damage(0, first, "no magic at the beginning")
            at = first
        while at < self._end:
            if self._ends(at):
                return
            try:
                record = self._take(at)
            except RecordError as fault:
                next_at = self._past(at)
                cut = next_at == self._end and not self._whole(at)
                reason = f"cut: {fault}" if cut else str(fault)
                yield Damage(at, next_at - at, reason, cut)
                at = next_at
            else:
                yield record
                at += record.length

    def _ends(self, at: int) -> bool:
        magic = records.MAGIC
        remaining = self._end - at
        return remaining == len(magic) and self._source.read(at, remaining) == magic

    def _take(self, at: int) -> Record:
        """Read the record at this position. Raises RecordError."""
        opcode, size = self._head(at)
        length = _HEAD.size + size
        if opcode == records.CHUNK:
            if size > CHUNK_MOST:
                raise RecordError(f"a chunk of {size} bytes (expected <= {CHUNK_MOST})")
            body = self._source.read(at + _HEAD.size, size)
            return Record(at, opcode, length, body, good_chunk(body))
        if not _possible(opcode, size):
            raise RecordError(f"unknown record {opcode:#x} of {size} bytes")
        body = self._source.read(at + _HEAD.size, size)
        parsing.check(opcode, body)
        if opcode not in records.OPCODES and _is_chunk(body):
            raise RecordError(f"a chunk with the opcode {opcode:#x}")
        if not self._plausible(at + length):
            raise RecordError(f"record {opcode:#x} ends before bytes that are no record")
        return Record(at, opcode, length, body, memoryview(b""))

    def _head(self, at: int) -> tuple[int, int]:
        """Read opcode and length of a record that fits. Raises RecordError."""
        head = self._source.read(at, _HEAD.size)
        remaining = self._end - at - _HEAD.size
        if len(head) < _HEAD.size or remaining < 0:
            raise RecordError(f"{self._end - at} bytes")
        opcode, size = _HEAD.unpack(head)
        if size > remaining:
            raise RecordError(f"record {opcode:#x} of {size} bytes where {remaining} are left")
        return opcode, size

    def _plausible(self, at: int) -> bool:
        """Return True if a record, perhaps a truncated one, or the file's end is possible here."""
        head = self._source.read(at, _HEAD.size)
        if at + _HEAD.size > self._end or self._ends(at):
            return True
        if len(head) < _HEAD.size:  # the file was truncated during the read
            return False
        opcode, size = _HEAD.unpack(head)
        fits = opcode in records.OPCODES or at + _HEAD.size + size <= self._end
        return fits and _possible(opcode, size)

    def _whole(self, at: int) -> bool:
        """Return True if the record fits by its own length."""
        try:
            self._head(at)
        except RecordError:
            return False
        return True

    def _past(self, at: int) -> int:
        """Return the position at which to continue after an invalid record."""
        try:
            opcode, size = self._head(at)
            if opcode == records.CHUNK and size <= CHUNK_MOST:
                end = at + _HEAD.size + size
                head = self._source.read(at + _HEAD.size, _CHUNK_HEAD - _HEAD.size)
                if _sizes_agree(head, size) and self._plausible(end):
                    return end
        except RecordError:
            pass
        return self._next_chunk(at + 1)

    def _next_chunk(self, at: int) -> int:
        """Return the start of the next valid chunk, or the end."""
        while at < self._end:
            window = self._source.read(at, WINDOW + _CHUNK_HEAD)
            hit = window.find(records.CHUNK, 0, WINDOW)
            while hit >= 0:
                if self._chunk_at(at + hit, window[hit : hit + _CHUNK_HEAD]):
                    return at + hit
                hit = window.find(records.CHUNK, hit + 1, WINDOW)
            at += WINDOW
        return self._end

    def _chunk_at(self, at: int, head: bytes) -> bool:
        if len(head) < _CHUNK_HEAD:
            return False
        _, size = _HEAD.unpack_from(head)
        if not 40 <= size <= min(CHUNK_MOST, self._end - at - _HEAD.size):
            return False
        if not _sizes_agree(head[_HEAD.size :], size):
            return False
        try:
            self._take(at)
        except RecordError:
            return False
        return True


def _possible(opcode: int, size: int) -> bool:
    """Return True for the head of a record. Readers skip opcodes that they do not know, private
    ones (0x80 and above) and those of a later version."""
    return opcode != 0 and size <= CHUNK_MOST


def _is_chunk(body: bytes) -> bool:
    try:
        known_chunk(body)
    except RecordError:
        return False
    return True


def _sizes_agree(head: bytes, size: int) -> bool:
    """Return True if the lengths in a chunk's head agree with its record's."""
    fields = parsing.Fields(head)
    try:
        fields.take(16)
        uncompressed, _, name = fields.number(8), fields.number(4), fields.number(4)
        if name:  # compressed: the stored length follows the name
            return name in (3, 4) and size >= 40 + name
        return uncompressed == size - 40 and fields.number(8) == uncompressed
    except RecordError:
        return False
