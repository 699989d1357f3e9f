"""Writers for tables: CSV or Parquet, in files or in memory."""

import csv
import importlib.util
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fpvcar.recordings import codec, messages
from fpvcar.recordings.export.mp4_export import Timeline
from fpvcar.recordings.export.pictures import DecodableFilter
from fpvcar.recordings.export.tables import (
    Cell,
    Columns,
    Utc,
    cell_text,
    columns_of,
    file_stem,
    row_of,
    table_of,
)
from fpvcar.recordings.reader import Recording

ROWS_HELD = 20_000
"""Parquet rows buffered before each write."""
TEXT_HELD = 64 * 1024
"""Characters of CSV buffered before compression."""


def has_parquet() -> bool:
    """Return whether pyarrow is installed. Cars do not have it."""
    return importlib.util.find_spec("pyarrow") is not None


class TableWriter(Protocol):
    """Writer of one table."""

    def add(self, row: tuple[Cell, ...]) -> None:
        """Append one row, cells in the order of the columns."""

    def close(self) -> None:
        """Flush buffered rows and complete the table."""


class RecordingTables:
    """Tables of a recording: one per topic, created at its first message.

    Topics of other programs are ignored. `begin` creates a writer from a name and columns.
    """

    def __init__(self, begin: Callable[[str, Columns], TableWriter]) -> None:
        self._begin = begin
        self._open: dict[str, TableWriter] = {}
        self.rows: dict[str, int] = {}
        """Number of rows by topic."""
        self.unread = 0
        """Number of messages that could not be decoded."""
        self._timeline, self._decodable, self._recording = Timeline(), DecodableFilter(), ""

    def add(self, recording: Recording) -> Iterator[int]:
        """Add a recording's messages; yield the size of each. Raises OSError.

        Pictures that the film leaves out have no row.
        """
        about = recording.about
        self._decodable.next_file()
        name = about.recording if about else ""
        if name != self._recording:  # the clock may have been set: start a new film
            self._timeline, self._recording = Timeline(), name
        offset_ns = None if about is None else about.utc_offset_ns
        for message in recording.messages():
            topic, table = message.topic, table_of(message.topic)
            yield len(message.data)
            if table is None:
                continue
            try:
                decoded = codec.decode(topic, message.data)
            except messages.FormatError:
                self.unread += 1
                decoded = None
            if topic == messages.CAMERA:
                frame = self._decodable.frame(message)
                if frame is None or self._timeline.picture(frame) is None:
                    continue
            if decoded is None:
                continue
            if topic not in self._open:
                self._open[topic] = self._begin(file_stem(topic), columns_of(table))
            self._open[topic].add(row_of(table, decoded, message.publish_ns, offset_ns))
            self.rows[topic] = self.rows.get(topic, 0) + 1

    def close(self) -> None:
        """Close all tables; the next row creates new ones."""
        for writer in self._open.values():
            writer.close()
        self._open.clear()


class CsvFile:
    """Table as a CSV file, RFC 4180."""

    suffix = ".csv"

    def __init__(self, path: Path, columns: Columns) -> None:
        self._file = path.open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file)
        self._writer.writerow(columns)

    def add(self, row: tuple[Cell, ...]) -> None:
        self._writer.writerow([cell_text(cell) for cell in row])

    def close(self) -> None:
        self._file.close()


class ParquetFile:
    """Table as a Parquet file, zstd-compressed."""

    suffix = ".parquet"

    def __init__(self, path: Path | io.BytesIO, columns: Columns) -> None:
        self._arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
        kinds = {
            float: self._arrow.float64(),
            int: self._arrow.int64(),
            bool: self._arrow.bool_(),
            str: self._arrow.string(),
            Utc: self._arrow.timestamp("ns", tz="UTC"),
        }
        self._schema = self._arrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
        self._rows: list[tuple[Cell, ...]] = []
        self._writer = parquet.ParquetWriter(path, self._schema, compression="zstd")

    def add(self, row: tuple[Cell, ...]) -> None:
        """Buffer a row; write the buffer when it holds ROWS_HELD rows."""
        self._rows.append(row)
        if len(self._rows) >= ROWS_HELD:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            columns = [
                self._arrow.array(cells, field.type)
                for cells, field in zip(zip(*self._rows, strict=True), self._schema, strict=True)
            ]
            table = self._arrow.Table.from_arrays(columns, schema=self._schema)
            self._writer.write_table(table)
            self._rows.clear()

    def close(self) -> None:
        self._flush()
        self._writer.close()


class PackedCsv:
    """Table as CSV, compressed in memory to about one twentieth of its size."""

    suffix = CsvFile.suffix

    def __init__(self, columns: Columns) -> None:
        self._text = io.StringIO(newline="")
        self._writer = csv.writer(self._text)
        self._writer.writerow(columns)
        self._packer = zlib.compressobj(level=1)
        self._packed: list[bytes] = []
        self.size = 0
        """Approximate size in memory, bytes."""

    def add(self, row: tuple[Cell, ...]) -> None:
        self._writer.writerow([cell_text(cell) for cell in row])
        if self._text.tell() >= TEXT_HELD:
            self._pack()

    def _pack(self) -> None:
        packed = self._packer.compress(self._text.getvalue().encode())
        self._text.seek(0)
        self._text.truncate()
        self._packed.append(packed)
        self.size += len(packed)

    def close(self) -> None:
        """Compress the remaining rows and complete the table."""
        self._pack()
        self._packed.append(self._packer.flush())

    def pieces(self) -> Iterator[bytes]:
        """Yield the CSV of a closed table, decompressed."""
        unpacker = zlib.decompressobj()
        for packed in self._packed:
            yield unpacker.decompress(packed)


class PackedParquet(ParquetFile):
    """Table as Parquet, in memory."""

    def __init__(self, columns: Columns) -> None:
        self._held = io.BytesIO()
        super().__init__(self._held, columns)

    @property
    def size(self) -> int:
        """Return the approximate size in memory, bytes."""
        return self._held.tell()

    def pieces(self) -> Iterator[bytes]:
        """Yield the Parquet file of a closed table."""
        yield self._held.getvalue()


class RowCounts(NamedTuple):
    """Rows by topic, and the number of messages that could not be decoded."""

    rows: dict[str, int]
    unread: int


def write_tables(
    recordings: Iterable[Recording],
    folder: Path,
    kind: type[CsvFile] | type[ParquetFile],
    tell: Callable[[int], None],
) -> RowCounts:
    """Write one file per topic. Raises OSError.

    `tell` is called with the number of bytes read so far.
    """
    tables = RecordingTables(lambda name, columns: kind(folder / (name + kind.suffix), columns))
    done = 0
    try:
        for recording in recordings:
            for size in tables.add(recording):
                done += size
                tell(done)
    finally:
        tables.close()
    return RowCounts(tables.rows, tables.unread)
