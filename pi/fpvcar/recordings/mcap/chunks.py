"""Byte source of a reader, and validation of chunks."""

import errno
import importlib
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fpvcar.recordings.mcap import parsing, records
from fpvcar.recordings.mcap.parsing import PackageMissing, RecordError

CHUNK_MOST = 256 * 1024 * 1024
"""Limit of a chunk, also uncompressed: a reader holds one in memory."""


class Source:
    """File with random access. It is not mapped, as a card fault would then kill the process
    (SIGBUS)."""

    def __init__(self, path: Path, rest: Callable[[], None] | None = None) -> None:
        """Open a regular file; call `rest` before each read. Raises OSError, also for a pipe or a
        device: these cannot seek."""
        # opening a pipe must not block
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        self._file, self._rest = os.open(path, flags), rest
        about = os.fstat(self._file)
        self.size = about.st_size
        if not stat.S_ISREG(about.st_mode):
            os.close(self._file)
            raise OSError(errno.EINVAL, "not a file", str(path))

    def read(self, at: int, size: int) -> bytes:
        """Read at most `size` bytes; fewer only at the end. Raises OSError."""
        if self._rest is not None:
            self._rest()
        parts, end = [], min(at + size, self.size)
        while at < end:
            part = os.pread(self._file, end - at, at)
            if not part:  # the file was truncated during the read
                break
            parts.append(part)
            at += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Close the file; no read may follow."""
        os.close(self._file)


def inner_records(inner: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield (opcode, body) of each record in a chunk. Raises RecordError."""
    at, end, head = 0, len(inner), records.HEAD
    while at < end:
        if end - at < head.size:
            raise RecordError(f"{end - at} bytes behind a chunk's last record")
        opcode, length = head.unpack_from(inner, at)
        at += head.size
        if opcode == 0:  # zeros of a file that lost its data
            raise RecordError("a record of opcode 0")
        if length > end - at:
            raise RecordError(f"a record of {length} bytes where {end - at} are left")
        if opcode == records.MESSAGE and length < records.MESSAGE_FIXED:
            raise RecordError(f"a message of {length} bytes")
        yield opcode, inner[at : at + length]
        at += length


def _uncompressed(chunk: parsing.Chunk) -> memoryview:
    """Return the uncompressed records. Raises RecordError, and PackageMissing if the library is
    missing."""
    if not chunk.compression:
        return chunk.records
    if chunk.size > CHUNK_MOST:
        raise RecordError(f"a chunk of {chunk.size} bytes (expected <= {CHUNK_MOST})")
    if chunk.compression != "zstd":
        raise RecordError(
            f"a chunk is compressed by {chunk.compression!r} (expected zstd or none): "
            "`mcap compress` writes the file anew with zstd"
        )
    try:
        library: Any = importlib.import_module("zstandard")
    except ImportError:
        raise PackageMissing(
            "compressed with zstd, which the Python package zstandard reads: pip install zstandard"
        ) from None
    try:
        stream = library.ZstdDecompressor().stream_reader(bytes(chunk.records))
        data = stream.read(chunk.size)
    except Exception as fault:  # raised by a library that is not imported here
        raise RecordError(f"zstd: {fault}") from None
    if len(data) != chunk.size:
        raise RecordError(f"a chunk of {len(data)} bytes (expected {chunk.size})")
    return memoryview(data)


def good_chunk(body: bytes) -> memoryview:
    """Return a chunk's records after validation of its CRC, if it has one, and its structure.

    Raises RecordError, PackageMissing.
    """
    inner = known_chunk(body)
    for _ in inner_records(inner):
        pass
    return inner


def known_chunk(body: bytes) -> memoryview:
    """Return the records of a chunk that was good before, after validation of its CRC. Raises as
    `good_chunk`."""
    chunk = parsing.take_chunk(body)
    inner = _uncompressed(chunk)
    if chunk.crc not in (0, zlib.crc32(inner)):
        raise RecordError("a chunk's CRC is wrong")
    return inner
