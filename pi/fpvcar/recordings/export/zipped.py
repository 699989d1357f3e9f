"""Makes a zip of a drive, piece by piece: its files as they are, tables, what is lost.

    each file  -> NAME.mcap, stored: bytes as they are on the card
               -> rows of tables, packed in memory
    at the end -> tables/TOPIC.csv, README.txt

No file is written beside it. The sizes of what is stored stand behind each entry and at
the zip's end, as zipfile writes where it cannot seek back.
"""

import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from fpvcar.mcap.parsing import PackageMissing
from fpvcar.recordings import reader
from fpvcar.recordings.export.table_writers import PackedCsv, PackedParquet, Sheets
from fpvcar.recordings.export.tables import Columns
from fpvcar.recordings.reader import ReadError
from fpvcar.recordings.repair.damage import losses
from fpvcar.runtime.units import MIB

PIECE_BYTES = 64 * 1024
TABLES_HELD = 16 * MIB
"""Bytes of packed tables that are held: hours of driving. Then new ones begin."""
ROWS_AT_ONCE = 100
README = """\
A drive of {car}, as the car recorded it.

{files}tables/*{suffix:<9}what was measured, a table for each topic, units in the names

{missing}
"""
FILES = """\
*.mcap          all of it: open them in Foxglove, Lichtblick or Rerun, or with the
                mcap libraries; fpvcar plays, checks and exports them
"""


class _Pieces:
    """What zipfile writes to: not seekable, emptied again and again."""

    def __init__(self) -> None:
        self._held: list[bytes] = []

    def write(self, data: bytes) -> int:
        """Holds bytes."""
        self._held.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is to be done."""

    def take(self) -> bytes:
        """Gives all that it holds."""
        held, self._held = self._held, []
        return b"".join(held)


class DriveZip:
    """The zip of some files. `rest` is called before each piece that is read.

    `missing` says in words what is damaged, gone or could not be read; it is all there
    when the last piece is.
    """

    def __init__(
        self,
        car: str,
        paths: Iterable[Path],
        rest: Callable[[], None] = lambda: None,
        kind: type[PackedCsv] | type[PackedParquet] = PackedCsv,
        files: bool = True,
    ) -> None:
        """`kind` is of its tables; without `files` there are only those in it."""
        self._car, self._paths, self._rest = car, list(paths), rest
        self._kind, self._files = kind, files
        self.missing: list[str] = []
        self._sheets = Sheets(self._begin)
        self._held: dict[str, PackedCsv | PackedParquet] = {}
        self._rounds = 0

    def pieces(self) -> Iterator[bytes]:
        """Yields the zip; some pieces are empty, so that nobody waits for long."""
        out = _Pieces()
        # zipfile asks for no more than these two of a stream.
        with zipfile.ZipFile(out, "w") as made:  # type: ignore[call-overload]
            for path in self._paths:
                for _ in self._file(made, path):
                    yield out.take()
            for _ in self._put_tables(made):
                yield out.take()
            if self._sheets.unread:
                self.missing.append(f"{self._sheets.unread} messages could not be read for a table")
            said = "\n".join(self.missing) or "Nothing is missing."
            info = _entry("README.txt", time.time(), zipfile.ZIP_DEFLATED)
            made.writestr(
                info,
                README.format(
                    car=self._car,
                    missing=said,
                    files=FILES if self._files else "",
                    suffix=self._kind.suffix,
                ),
            )
        yield out.take()

    def _file(self, made: zipfile.ZipFile, path: Path) -> Iterator[None]:
        try:
            if self._files:
                yield from self._bytes(made, path)
            yield from self._rows(path)
        except FileNotFoundError:
            self.missing.append(f"{path.name}: has just gone")
        except (ReadError, PackageMissing) as fault:
            self.missing.append(f"{fault}".replace(str(path), path.name))
        except OSError as fault:
            words = f"cannot be read to its end: {fault.strerror or fault}"
            self.missing.append(f"{path.name}: {words}")
        if sum(one.size for one in self._held.values()) > TABLES_HELD:
            yield from self._put_tables(made)

    def _bytes(self, made: zipfile.ZipFile, path: Path) -> Iterator[None]:
        with path.open("rb") as file:
            about = path.stat()
            entry = _entry(path.name, about.st_mtime, zipfile.ZIP_STORED)
            entry.file_size = about.st_size  # does it need 64 bits?
            with made.open(entry, "w") as inside:
                self._rest()
                while piece := file.read(PIECE_BYTES):
                    inside.write(piece)
                    yield
                    self._rest()

    def _rows(self, path: Path) -> Iterator[None]:
        with reader.read(path, self._rest) as recording:
            self.missing += losses(Path(path.name), recording)
            for number, _ in enumerate(self._sheets.add(recording)):
                if number % ROWS_AT_ONCE == 0:
                    yield

    def _begin(self, name: str, columns: Columns) -> PackedCsv | PackedParquet:
        self._held[name] = self._kind(columns)
        return self._held[name]

    def _put_tables(self, made: zipfile.ZipFile) -> Iterator[None]:
        self._sheets.close()
        self._rounds += 1
        folder = "tables" if self._rounds == 1 else f"tables-{self._rounds}"
        for name, one in sorted(self._held.items()):
            entry = _entry(f"{folder}/{name}{self._kind.suffix}", time.time(), zipfile.ZIP_DEFLATED)
            with made.open(entry, "w") as inside:
                for piece in one.pieces():
                    self._rest()
                    inside.write(piece)
                    yield
        self._held.clear()


def _entry(name: str, changed_s: float, method: int) -> zipfile.ZipInfo:
    when = time.gmtime(max(changed_s, 315_532_800.0))  # a zip knows no time before 1980
    info = zipfile.ZipInfo(name, when[:6])
    info.compress_type = method
    info.external_attr = 0o644 << 16
    return info
