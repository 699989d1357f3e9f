"""Export jobs: requested files, progress, and the work for them."""

import secrets
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from fpvcar.library.drive_repository import DriveRepository
from fpvcar.recordings import names, reader
from fpvcar.recordings.export.mp4_export import Mp4Export, TimeRange
from fpvcar.recordings.export.table_writers import PackedCsv, PackedParquet, has_parquet
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.reader import EVER_NS, Recording
from fpvcar.recordings.repair.damage import losses
from fpvcar.runtime.texts import FILE_MISSING, VERBATIM, Phrase, Text
from fpvcar.runtime.workers import Rest

if TYPE_CHECKING:
    from fpvcar.recordings.export.zipped import DriveZip

EXPORT_GROWING = Phrase("export_growing", "{name}: still being written, so it is not in here")

STEP_S = 0.02
TABLES_SHARE = 20
"""Ratio of a recording's size to that of its tables, roughly: the rest is pictures."""
MISSING_MAX = 50
NAME_SHOWN = 80
"""Most characters of an unknown file name in a refusal."""
ZIP = "application/zip"
TYPES = {
    "film": ("video/mp4", ".mp4"),
    "zip": (ZIP, ".zip"),
    "csv": (ZIP, "-csv.zip"),
    "parquet": (ZIP, "-parquet.zip"),
}


State = Literal["planning", "ready", "sending", "sent", "stopped", "failed"]


class ExportRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Export request: files, and for a film the time range within them (UTC)."""

    kind: Literal["film", "zip", "csv", "parquet"]
    files: list[str]
    from_ms: float = 0.0
    to_ms: float = EVER_NS / 1e6


class Export(Struct):
    """Progress of an export: bytes `done` of `total`; `exact` is False for an estimated total.

    `missing` lists damaged and missing data; `fault` is the reason of a failure.
    """

    id: str
    kind: str
    name: str
    state: State
    done: int
    total: int
    exact: bool
    missing: list[Text]
    fault: Text | None = None


Work: TypeAlias = "Mp4Export | DriveZip"


class Job:
    """Export with its work; `notes` list the data missing in its files.

    `fresh()` returns new work for each sending, since a phone may request the file twice.
    """

    def __init__(
        self, export: Export, fresh: Callable[[], Work], notes: list[Text], now_s: float
    ) -> None:
        self.export, self._fresh, self.notes, self.seen_s = export, fresh, notes, now_s
        self.work = fresh()
        self.cancelled, self._sending = False, 0
        self._cut: Callable[[], object] = lambda: None

    @property
    def active(self) -> bool:
        """Return whether the thread is working on this export."""
        return self.export.state in ("planning", "sending")

    def status(self) -> Export:
        """Return the current state of the export."""
        missing = [*self.notes, *self.work.missing]
        more = len(missing) - MISSING_MAX
        rest = [Text("export_more", "and {count} more", count=more)] if more > 0 else []
        self.export.missing = [*missing[:MISSING_MAX], *rest]
        return self.export

    def begin(self, cut: Callable[[], object]) -> int:
        """Begin a sending and end the previous one; return the number of the new sending.

        `cut` ends the new sending at once.
        """
        self._cut()
        self._cut = cut
        self._sending += 1
        self.cancelled, export = False, self.export
        export.state, export.done, export.fault = "sending", 0, None
        return self._sending

    def sent(self, number: int, size: int) -> None:
        """Add to the bytes sent; only the newest sending counts."""
        if number == self._sending:
            self.export.done += size

    def over(self, number: int, state: State, fault: Text | None) -> None:
        """Record the end of a sending."""
        if number == self._sending:
            self.export.state, self.export.fault = state, fault
            self._cut = lambda: None

    def cancel(self) -> None:
        """End all work that is under way for this export."""
        self.cancelled = True
        self._cut()
        if self.export.state != "sent":
            self.export.state = "stopped"

    def pieces(self) -> Generator[bytes, None, None]:
        """Yield the bytes of the export."""
        self.work = self._fresh()
        yield from self.work.pieces()


class JobFactory:
    """Factory of jobs for the recordings of a repository. `rest` makes the thread rest."""

    def __init__(self, repository: DriveRepository, car: str, rest: Rest) -> None:
        self._repository, self._writing = repository, repository.writing
        self._car, self._rest = car, rest

    def job(self, request: ExportRequest, now_s: float) -> Job:
        """Create a job for a request. Raises FileNotFoundError, OSError."""
        if request.kind == "parquet" and not has_parquet():
            raise FileNotFoundError(
                Text("export_no_parquet", "Parquet needs pyarrow, which is not installed: use CSV")
            )
        paths = self._paths(request.files)
        total = sum(path.stat().st_size for path in paths)
        if request.kind in ("csv", "parquet"):
            total //= TABLES_SHARE
        name = _name(self._car, request) + TYPES[request.kind][1]
        export = Export(secrets.token_urlsafe(12), request.kind, name, "ready", 0, total, False, [])
        if request.kind == "film":
            export.state, notes = "planning", list[Text]()
            end_ns = min(round(request.to_ms * 1e6), EVER_NS)
            time_range = TimeRange(round(request.from_ms * 1e6), end_ns)
            film = Mp4Export(lambda: self._opened(request.files, notes), time_range, self._rest)
            return Job(export, lambda: film, notes, now_s)
        growing = set(filter(self._writing, paths))
        sealed = [path for path in paths if path not in growing]
        notes = [EXPORT_GROWING(name=path.name) for path in paths if path in growing]
        return Job(export, lambda: self._zipped(sealed, request.kind), notes, now_s)

    def _zipped(self, paths: Sequence[Path], kind: str) -> "DriveZip":
        # Imported here: a car that exports nothing saves 1 MB.
        from fpvcar.recordings.export.zipped import DriveZip

        tables = PackedParquet if kind == "parquet" else PackedCsv
        return DriveZip(self._car, paths, self._rest, tables, kind == "zip")

    def _paths(self, file_names: Sequence[str]) -> list[Path]:
        """Return the paths of these files. Raises FileNotFoundError."""
        paths = self._repository.paths(file_names)
        for name in file_names:
            if name not in paths:
                raise FileNotFoundError(FILE_MISSING(name=name[:NAME_SHOWN]))
        return [paths[name] for name in file_names]

    def _opened(self, file_names: Sequence[str], notes: list[Text]) -> Iterator[Recording]:
        """Open the recordings in turn and note lost data."""
        notes.clear()
        for name in file_names:
            path = Path(name)
            try:
                path = self._paths([name])[0]
                with reader.read(path, self._rest) as recording:
                    if not self._writing(path):
                        notes += losses(Path(path.name), recording)
                    yield recording
            except FileNotFoundError:
                notes.append(FILE_MISSING(name=name))
            except (RecordingError, OSError) as fault:
                notes.append(VERBATIM(text=f"{fault}".replace(str(path), path.name)))


def advance(steps: Iterator[int]) -> int:
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


def _name(car: str, request: ExportRequest) -> str:
    """Return a name based on the start time of the exported data."""
    if request.from_ms:
        return names.recording_name(car, round(request.from_ms * 1e6))
    parsed = names.parse(request.files[0])
    return parsed.recording if parsed else car
