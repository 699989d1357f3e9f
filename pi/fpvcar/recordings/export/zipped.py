"""Zip of a drive, streamed in pieces: its files unchanged, tables, and a list of losses.

    each file  -> NAME.mcap, stored: bytes as on the card
               -> rows of tables, compressed in memory
    at the end -> tables/TOPIC.csv, README.txt

No temporary file is written. The sizes of stored files follow each entry and are repeated at the
end of the zip, as zipfile does for a stream that cannot seek.
"""

import time
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from fpvcar.recordings import reader
from fpvcar.recordings.export.table_writers import PackedCsv, PackedParquet, RecordingTables
from fpvcar.recordings.export.tables import Columns
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.repair.damage import losses
from fpvcar.runtime.texts import FILE_MISSING, VERBATIM, Phrase, Text, os_reason
from fpvcar.runtime.units import MIB
from fpvcar.runtime.workers import Rest, no_rest

EXPORT_TABLE = Phrase("export_table", "{count} messages could not be read for a table")
EXPORT_CUT = Phrase("export_cut", "{name}: cannot be read to its end: {reason}")

PIECE_BYTES = 64 * 1024
TABLES_HELD = 16 * MIB
"""Limit of compressed tables in memory, in bytes: hours of driving. New tables begin after it."""
ROWS_AT_ONCE = 100
README = """\
A drive of {car}, as the car recorded it.

{files}tables/*{suffix:<9}measurements, a table for each topic, units in the names

{missing}
"""
FILES = """\
*.mcap          all of it: open them in Foxglove, Lichtblick or Rerun, or with the
                mcap libraries; fpvcar plays, checks and exports them
"""


class _OutputBuffer:
    """Output stream for zipfile: not seekable, drained after each step."""

    def __init__(self) -> None:
        self._held: list[bytes] = []

    def write(self, data: bytes) -> int:
        """Append bytes to the buffer."""
        self._held.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing; zipfile requires this method."""

    def take(self) -> bytes:
        """Return the buffered bytes and clear the buffer."""
        held, self._held = self._held, []
        return b"".join(held)


class DriveZip:
    """Zip of several files. Calls `rest` before reading each piece.

    `missing` lists damaged, removed and unreadable data; it is complete after the last piece.
    """

    def __init__(
        self,
        car: str,
        paths: Iterable[Path],
        rest: Rest = no_rest,
        kind: type[PackedCsv] | type[PackedParquet] = PackedCsv,
        files: bool = True,
    ) -> None:
        """Take the table writer as `kind`. If `files` is false, the zip contains only tables."""
        self._car, self._paths, self._rest = car, list(paths), rest
        self._kind, self._files = kind, files
        self.missing: list[Text] = []
        self._tables = RecordingTables(self._begin)
        self._held: dict[str, PackedCsv | PackedParquet] = {}
        self._rounds = 0

    def pieces(self) -> Iterator[bytes]:
        """Yield the zip; some pieces are empty, to keep each step short."""
        out = _OutputBuffer()
        # zipfile calls only these two methods of a stream.
        with zipfile.ZipFile(out, "w") as archive:  # type: ignore[call-overload]
            for path in self._paths:
                for _ in self._file(archive, path):
                    yield out.take()
            for _ in self._put_tables(archive):
                yield out.take()
            if self._tables.unread:
                self.missing.append(EXPORT_TABLE(count=self._tables.unread))
            losses_text = "\n".join(map(str, self.missing)) or "Nothing is missing."
            info = _entry("README.txt", time.time(), zipfile.ZIP_DEFLATED)
            archive.writestr(
                info,
                README.format(
                    car=self._car,
                    missing=losses_text,
                    files=FILES if self._files else "",
                    suffix=self._kind.suffix,
                ),
            )
        yield out.take()

    def _file(self, archive: zipfile.ZipFile, path: Path) -> Iterator[None]:
        try:
            if self._files:
                yield from self._bytes(archive, path)
            yield from self._rows(path)
        except FileNotFoundError:
            self.missing.append(FILE_MISSING(name=path.name))
        except RecordingError as fault:
            self.missing.append(VERBATIM(text=f"{fault}".replace(str(path), path.name)))
        except OSError as fault:
            self.missing.append(EXPORT_CUT(name=path.name, reason=os_reason(fault)))
        if sum(table.size for table in self._held.values()) > TABLES_HELD:
            yield from self._put_tables(archive)

    def _bytes(self, archive: zipfile.ZipFile, path: Path) -> Iterator[None]:
        with path.open("rb") as file:
            status = path.stat()
            entry = _entry(path.name, status.st_mtime, zipfile.ZIP_STORED)
            entry.file_size = status.st_size  # decides whether zipfile uses 64-bit sizes
            with archive.open(entry, "w") as inside:
                self._rest()
                while piece := file.read(PIECE_BYTES):
                    inside.write(piece)
                    yield
                    self._rest()

    def _rows(self, path: Path) -> Iterator[None]:
        with reader.read(path, self._rest) as recording:
            self.missing += losses(Path(path.name), recording)
            for number, _ in enumerate(self._tables.add(recording)):
                if number % ROWS_AT_ONCE == 0:
                    yield

    def _begin(self, name: str, columns: Columns) -> PackedCsv | PackedParquet:
        self._held[name] = self._kind(columns)
        return self._held[name]

    def _put_tables(self, archive: zipfile.ZipFile) -> Iterator[None]:
        self._tables.close()
        self._rounds += 1
        folder = "tables" if self._rounds == 1 else f"tables-{self._rounds}"
        for name, table in sorted(self._held.items()):
            entry = _entry(f"{folder}/{name}{self._kind.suffix}", time.time(), zipfile.ZIP_DEFLATED)
            with archive.open(entry, "w") as inside:
                for piece in table.pieces():
                    self._rest()
                    inside.write(piece)
                    yield
        self._held.clear()


def _entry(name: str, changed_s: float, method: int) -> zipfile.ZipInfo:
    when = time.gmtime(max(changed_s, 315_532_800.0))  # zip times start in 1980
    info = zipfile.ZipInfo(name, when[:6])
    info.compress_type = method
    info.external_attr = 0o644 << 16
    return info
