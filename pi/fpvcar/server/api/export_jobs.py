"""Export jobs: requested files, progress, and the work for them."""

import secrets
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from fpvcar.mcap.parsing import PackageMissing
from fpvcar.recordings import names, reader
from fpvcar.recordings.export.mp4_export import Mp4Export, TimeRange
from fpvcar.recordings.export.table_writers import PackedCsv, PackedParquet, has_parquet
from fpvcar.recordings.library.drive_repository import DriveRepository
from fpvcar.recordings.reader import EVER_NS, ReadError, Recording
from fpvcar.recordings.repair.damage import losses

if TYPE_CHECKING:
    from fpvcar.recordings.export.zipped import DriveZip

STEP_S = 0.02
TABLES_SHARE = 20
"""Ratio of a recording's size to that of its tables, roughly: the rest is pictures."""
MISSING_MAX = 50
ZIP = "application/zip"
TYPES = {
    "film": ("video/mp4", ".mp4"),
    "zip": (ZIP, ".zip"),
    "csv": (ZIP, "-csv.zip"),
    "parquet": (ZIP, "-parquet.zip"),
}


class ExportRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Export request: files, and for a film the time range within them (UTC)."""

    kind: Literal["film", "zip", "csv", "parquet"]
    files: list[str]
    from_ms: float = 0.0
    to_ms: float = EVER_NS / 1e6


class Export(Struct):
    """Progress of an export: bytes `done` of `total`; `exact` is False for an estimated total.

    `missing` lists damaged and missing data in words; `fault` is the reason of a failure.
    """

    id: str
    kind: str
    name: str
    state: str
    done: int
    total: int
    exact: bool
    missing: list[str]
    fault: str = ""


Work: TypeAlias = "Mp4Export | DriveZip"


class Job:
    """Export with its work; `notes` list the data missing in its files.

    `fresh()` returns new work for each sending, since a phone may request the file twice.
    """

    def __init__(
        self, shown: Export, fresh: Callable[[], Work], notes: list[str], now_s: float
    ) -> None:
        self.shown, self._fresh, self.notes, self.seen_s = shown, fresh, notes, now_s
        self.work = fresh()
        self.cancelled, self._sending = False, 0
        self._cut: Callable[[], object] = lambda: None

    @property
    def active(self) -> bool:
        """Return whether the thread is working on this export."""
        return self.shown.state in ("planning", "sending")

    def said(self) -> Export:
        """Return the current state of the export."""
        missing = [*self.notes, *self.work.missing]
        more = len(missing) - MISSING_MAX
        rest = [f"and {more} more"] if more > 0 else []
        self.shown.missing = [*missing[:MISSING_MAX], *rest]
        return self.shown

    def begin(self, cut: Callable[[], object]) -> int:
        """Begin a sending and end the previous one; return the number of the new sending.

        `cut` ends the new sending at once.
        """
        self._cut()
        self._cut = cut
        self._sending += 1
        self.cancelled, shown = False, self.shown
        shown.state, shown.done, shown.fault = "sending", 0, ""
        return self._sending

    def sent(self, number: int, size: int) -> None:
        """Add to the bytes sent; only the newest sending counts."""
        if number == self._sending:
            self.shown.done += size

    def over(self, number: int, state: str, fault: str) -> None:
        """Record the end of a sending."""
        if number == self._sending:
            self.shown.state, self.shown.fault = state, fault
            self._cut = lambda: None

    def cancel(self) -> None:
        """End all work that is under way for this export."""
        self.cancelled = True
        self._cut()
        if self.shown.state != "sent":
            self.shown.state = "stopped"

    def pieces(self) -> Generator[bytes, None, None]:
        """Yield the bytes of the export."""
        self.work = self._fresh()
        yield from self.work.pieces()


class JobFactory:
    """Factory of jobs for the recordings on a shelf. `rest` makes the thread rest."""

    def __init__(self, shelf: DriveRepository, car: str, rest: Callable[[], None]) -> None:
        self._shelf, self._writing = shelf, shelf.writing
        self._car, self._rest = car, rest

    def job(self, wanted: ExportRequest, now_s: float) -> Job:
        """Create a job for a request. Raises FileNotFoundError, OSError."""
        if wanted.kind == "parquet" and not has_parquet():
            raise FileNotFoundError("Parquet needs pyarrow, which is not here: use CSV")
        paths = self._paths(wanted.files)
        total = sum(path.stat().st_size for path in paths)
        if wanted.kind in ("csv", "parquet"):
            total //= TABLES_SHARE
        name = _name(self._car, wanted) + TYPES[wanted.kind][1]
        shown = Export(secrets.token_urlsafe(12), wanted.kind, name, "ready", 0, total, False, [])
        if wanted.kind == "film":
            shown.state, notes = "planning", list[str]()
            end_ns = min(round(wanted.to_ms * 1e6), EVER_NS)
            stretch = TimeRange(round(wanted.from_ms * 1e6), end_ns)
            film = Mp4Export(lambda: self._opened(wanted.files, notes), stretch, self._rest)
            return Job(shown, lambda: film, notes, now_s)
        growing = set(filter(self._writing, paths))
        whole = [path for path in paths if path not in growing]
        words = "still being written, so it is not in here"
        notes = [f"{path.name}: {words}" for path in paths if path in growing]
        return Job(shown, lambda: self._zipped(whole, wanted.kind), notes, now_s)

    def _zipped(self, paths: Sequence[Path], kind: str) -> "DriveZip":
        # Imported here: a car that exports nothing saves 1 MB.
        from fpvcar.recordings.export.zipped import DriveZip

        tables = PackedParquet if kind == "parquet" else PackedCsv
        return DriveZip(self._car, paths, self._rest, tables, kind == "zip")

    def _paths(self, wanted: Sequence[str]) -> list[Path]:
        """Return the paths of these files. Raises FileNotFoundError."""
        there = self._shelf.paths(wanted)
        for name in wanted:
            if name not in there:
                raise FileNotFoundError(f"{name}: is not there any more")
        return [there[name] for name in wanted]

    def _opened(self, wanted: Sequence[str], notes: list[str]) -> Iterator[Recording]:
        """Open the recordings in turn and note lost data."""
        notes.clear()
        for name in wanted:
            path = Path(name)
            try:
                path = self._paths([name])[0]
                with reader.read(path, self._rest) as recording:
                    if not self._writing(path):
                        notes += losses(Path(path.name), recording)
                    yield recording
            except FileNotFoundError:
                notes.append(f"{name}: has just gone")
            except (ReadError, PackageMissing, OSError) as fault:
                notes.append(f"{fault}".replace(str(path), path.name))


def some(steps: Iterator[int]) -> int:
    """Continue for STEP_S; return the progress, or -1 at the end."""
    end_s = time.monotonic() + STEP_S
    for done in steps:
        if time.monotonic() >= end_s:
            return done
    return -1


def name_of(film: str, incomplete: bool) -> str:
    """Return the file name of a film for download, marked if the film is incomplete.

    A film has no other place for this note; a zip has its README.txt.
    """
    stem, dot, suffix = film.rpartition(".")
    return f"{stem}-incomplete{dot}{suffix}" if incomplete else film


def _name(car: str, wanted: ExportRequest) -> str:
    """Return a name based on the start time of the exported data."""
    if wanted.from_ms:
        return names.recording_name(car, round(wanted.from_ms * 1e6))
    parsed = names.parse(wanted.files[0])
    return parsed.recording if parsed else car
