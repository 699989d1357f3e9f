"""Writes tables: in files, as CSV or Parquet, or held in memory to be sent."""

import csv
import importlib.util
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fpvcar.recordings import messages
from fpvcar.recordings.export.mp4_export import Timeline
from fpvcar.recordings.export.pictures import Decodable
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
"""Rows of Parquet that are held before they are written."""
TEXT_HELD = 64 * 1024
"""Letters of CSV that are held before they are packed."""


def has_parquet() -> bool:
    """Is there what writes Parquet? A car has it not."""
    return importlib.util.find_spec("pyarrow") is not None


class Sheet(Protocol):
    """One table that is being written."""

    def add(self, row: tuple[Cell, ...]) -> None:
        """Adds a row."""

    def close(self) -> None:
        """The table is whole."""


class Sheets:
    """A sheet a topic, begun at its first message; topics of other programs have none.

    `begin` makes the sheet of a name and its columns.
    """

    def __init__(self, begin: Callable[[str, Columns], Sheet]) -> None:
        self._begin = begin
        self._open: dict[str, Sheet] = {}
        self.rows: dict[str, int] = {}
        """Rows by topic."""
        self.unread = 0
        """Messages that could not be read."""
        self._timeline, self._recording = Timeline(), ""

    def add(self, recording: Recording) -> Iterator[int]:
        """Add a recording's messages; yield the size of each. A picture that the film
        leaves out has no row. Raises OSError."""
        about, decodable = recording.about, Decodable()
        name = about.recording if about else ""
        if name != self._recording:  # its clock may have been set: another film
            self._timeline, self._recording = Timeline(), name
        offset_ns = None if about is None else about.utc_offset_ns
        for message in recording.messages():
            topic, table = message.topic, table_of(message.topic)
            yield len(message.data)
            if table is None:
                continue
            try:
                said = messages.decode(topic, message.data)
            except messages.FormatError:
                self.unread += 1
                said = None
            if topic == messages.CAMERA:
                frame = decodable.frame(message)
                if frame is None or self._timeline.shown(frame) is None:
                    continue
            if said is None:
                continue
            if topic not in self._open:
                self._open[topic] = self._begin(file_stem(topic), columns_of(table))
            self._open[topic].add(row_of(table, said, message.publish_ns, offset_ns))
            self.rows[topic] = self.rows.get(topic, 0) + 1

    def close(self) -> None:
        """All are whole; the next row begins new ones."""
        for one in self._open.values():
            one.close()
        self._open.clear()


class CsvFile:
    """One table as CSV, RFC 4180."""

    suffix = ".csv"

    def __init__(self, path: Path, columns: Columns) -> None:
        self._file = path.open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file)
        self._writer.writerow(columns)

    def add(self, row: tuple[Cell, ...]) -> None:
        """Writes a row."""
        self._writer.writerow([cell_text(cell) for cell in row])

    def close(self) -> None:
        """The file is whole."""
        self._file.close()


class ParquetFile:
    """One table as Parquet, zstd."""

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
        """Writes a row, or holds it until there are ROWS_HELD."""
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
        """The file is whole."""
        self._flush()
        self._writer.close()


class PackedCsv:
    """One table as CSV, packed in memory: some twentieth of its size."""

    suffix = CsvFile.suffix

    def __init__(self, columns: Columns) -> None:
        self._text = io.StringIO(newline="")
        self._writer = csv.writer(self._text)
        self._writer.writerow(columns)
        self._packer = zlib.compressobj(level=1)
        self._packed: list[bytes] = []
        self.size = 0
        """Bytes that it holds, nearly."""

    def add(self, row: tuple[Cell, ...]) -> None:
        """Adds a row."""
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
        """The table is whole."""
        self._pack()
        self._packed.append(self._packer.flush())

    def pieces(self) -> Iterator[bytes]:
        """Yields the CSV of a table that is whole."""
        unpacker = zlib.decompressobj()
        for packed in self._packed:
            yield unpacker.decompress(packed)


class PackedParquet(ParquetFile):
    """One table as Parquet, in memory."""

    def __init__(self, columns: Columns) -> None:
        self._held = io.BytesIO()
        super().__init__(self._held, columns)

    @property
    def size(self) -> int:
        """Bytes that it holds, nearly."""
        return self._held.tell()

    def pieces(self) -> Iterator[bytes]:
        """Yields the file of a table that is whole."""
        yield self._held.getvalue()


class Written(NamedTuple):
    """Rows by topic, and how many messages could not be read."""

    rows: dict[str, int]
    unread: int


def write_tables(
    recordings: Iterable[Recording],
    folder: Path,
    kind: type[CsvFile] | type[ParquetFile],
    tell: Callable[[int], None],
) -> Written:
    """Writes one file a topic. Raises OSError.

    `tell` hears how many bytes were read so far.
    """
    sheets = Sheets(lambda name, columns: kind(folder / (name + kind.suffix), columns))
    done = 0
    try:
        for recording in recordings:
            for size in sheets.add(recording):
                done += size
                tell(done)
    finally:
        sheets.close()
    return Written(sheets.rows, sheets.unread)
