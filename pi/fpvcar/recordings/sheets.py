"""Tables in files: CSV by the standard library, Parquet by pyarrow where it is."""

import csv
import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from fpvcar.recordings import messages, tables
from fpvcar.recordings.reader import Recording

ROWS = 20_000
"""Rows of Parquet that are held before they are written."""


class CsvSheet:
    """One table as CSV, RFC 4180."""

    suffix = ".csv"

    def __init__(self, path: Path, columns: tables.Columns) -> None:
        self._file = path.open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file)
        self._writer.writerow(columns)

    def add(self, row: tuple[tables.Cell, ...]) -> None:
        """One row more."""
        self._writer.writerow([tables.cell_text(cell) for cell in row])

    def close(self) -> None:
        """It is whole."""
        self._file.close()


class ParquetSheet:
    """One table as Parquet, zstd."""

    suffix = ".parquet"

    def __init__(self, path: Path, columns: tables.Columns) -> None:
        self._arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
        kinds = {
            float: self._arrow.float64(), int: self._arrow.int64(),
            bool: self._arrow.bool_(), str: self._arrow.string(),
        }  # fmt: skip
        self._schema = self._arrow.schema(
            [(name, kinds[kind]) for name, kind in columns.items()]
        )
        self._rows: list[tuple[tables.Cell, ...]] = []
        self._writer = parquet.ParquetWriter(path, self._schema, compression="zstd")

    def add(self, row: tuple[tables.Cell, ...]) -> None:
        """One row more."""
        self._rows.append(row)
        if len(self._rows) >= ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            columns = [
                self._arrow.array(cells, field.type)
                for cells, field in zip(
                    zip(*self._rows, strict=True), self._schema, strict=True
                )
            ]
            table = self._arrow.Table.from_arrays(columns, schema=self._schema)
            self._writer.write_table(table)
            self._rows.clear()

    def close(self) -> None:
        """It is whole."""
        self._flush()
        self._writer.close()


Sheet = CsvSheet | ParquetSheet


class Written(NamedTuple):
    """Rows by topic, and how many messages could not be read."""

    rows: dict[str, int]
    unread: int


def write_tables(
    recordings: Iterable[Recording], folder: Path, kind: type[Sheet],
    tell: Callable[[int], None],
) -> Written:  # fmt: skip
    """One file a topic. Topics of other programs are left out. Raises OSError.

    `tell` hears how many bytes were read so far.
    """
    sheets: dict[str, Sheet] = {}
    rows: dict[str, int] = {}
    done = unread = 0
    try:
        for recording in recordings:
            about = recording.about
            offset_ns = None if about is None else about.utc_offset_ns
            for message in recording.messages():
                topic, table = message.topic, tables.table_of(message.topic)
                done += len(message.data)
                tell(done)
                if table is None:
                    continue
                try:
                    said = messages.decode(topic, message.data)
                except messages.FormatError:
                    unread += 1
                    continue
                if topic not in sheets:
                    name = tables.file_stem(topic) + kind.suffix
                    sheets[topic] = kind(folder / name, tables.columns_of(table))
                sheets[topic].add(
                    tables.row_of(table, said, message.publish_ns, offset_ns)
                )
                rows[topic] = rows.get(topic, 0) + 1
    finally:
        for sheet in sheets.values():
            sheet.close()
    return Written(rows, unread)
