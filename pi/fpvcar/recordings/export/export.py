"""Export of recordings for other programs: one film, or tables.

    files, sorted by time -> mp4_export.Mp4Export, frames unchanged -> OUT.mp4
                          -> table_writers.RecordingTables -> OUT/TOPIC.csv | .parquet

Only one file is open at a time: a day has more files than a process may open. OUT is published
complete or not at all.

Losses of the files go to stderr and to a note beside the data: OUT.missing.txt for a film,
OUT/missing.txt for tables. The rest is exported, and the exit status is damage.INCOMPLETE.
"""

import contextlib
import importlib
import itertools
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from fpvcar.recordings import names, reader
from fpvcar.recordings.export.mp4_export import PAUSE_MOST_NS, Mp4Export
from fpvcar.recordings.export.progress import Progress
from fpvcar.recordings.export.table_writers import CsvFile, ParquetFile, write_tables
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.names import Say
from fpvcar.recordings.overview import overview_of
from fpvcar.recordings.reader import Recording
from fpvcar.recordings.repair.damage import INCOMPLETE, cut_short, losses
from fpvcar.runtime import files
from fpvcar.runtime.units import SECOND_NS, counted

OVERLAP_NS = SECOND_NS
NOTE = "missing.txt"


class File(NamedTuple):
    """Recording that is not open yet: size in bytes, UTC of its first and last message.

    `recording` is the name of the recording that contains the file, "" if unknown.
    """

    path: Path
    size: int
    start_ns: int
    end_ns: int
    recording: str


class OpenRecording(NamedTuple):
    """Recording that is open for reading."""

    path: Path
    recording: Recording


class Report:
    """Losses of an export. `incomplete` is true if recorded data is missing in it."""

    def __init__(self, say: Say) -> None:
        self.out, self.lines, self.incomplete = say, list[str](), False

    def say(self, text: str) -> None:
        """Report a message that is not necessarily a loss."""
        self.lines.append(text)
        self.out(text)

    def lost(self, text: str) -> None:
        self.incomplete = True
        self.say(text)

    def judged(self, inputs: Iterable[OpenRecording]) -> Iterator[Recording]:
        """Yield the recordings of `inputs`; set `incomplete` if any of them is incomplete."""
        for path, recording in inputs:
            self.incomplete = self.incomplete or cut_short(path, recording)
            yield recording

    def status(self, partial: bool) -> int:
        """Return the exit status; `partial` accepts losses."""
        return INCOMPLETE if self.incomplete and not partial else 0


def in_order(paths: Sequence[Path], say: Say, lost: Say | None = None) -> list[File]:
    """Sort recordings by time; a folder is replaced by its recordings.

    An unreadable file in a folder is left out and reported. An empty file is reported to `say`, as
    power failed when the recorder created it; any other file to `lost`. Raises RecordingError,
    OSError.
    """
    by_path: dict[Path, File] = {}
    for argument in paths:
        for path in names.files([argument], say):
            try:
                overview = overview_of(path)
            except RecordingError as fault:
                if path == argument:
                    raise
                (lost if lost and path.stat().st_size else say)(str(fault))
                continue
            name = overview.about.recording if overview.about else ""
            by_path[path] = File(path, overview.size, overview.start_ns, overview.end_ns, name)
    return sorted(by_path.values(), key=lambda file: file.start_ns)


def one_by_one(ordered: Iterable[File], say: Say) -> Generator[OpenRecording, None, None]:
    """Open one recording at a time; each is closed when the next one is requested.

    Losses are reported to `say`. Raises RecordingError, OSError.
    """
    for file in ordered:
        with reader.read(file.path) as recording:
            for loss in losses(file.path, recording):
                say(str(loss))
            yield OpenRecording(file.path, recording)


@contextlib.contextmanager
def published(out: Path, force: bool, folder: bool) -> Iterator[Path]:
    """Yield a temporary path beside `out`; it is renamed to `out` at the end.

    Raises RecordingError if `out` exists and `force` is not given.
    """
    if out.exists() and not force:
        raise RecordingError(f"{out} exists: choose another name, or --force")
    if not out.parent.is_dir():
        raise RecordingError(f"{out.parent} is no directory: create it first")
    place = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    new = place / "new"
    try:
        if folder:
            new.mkdir()
        yield new
        for path in [*new.iterdir(), new] if folder else [new]:
            files.sync(path)
        _put(new, out, place / "old", force)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _put(new: Path, out: Path, old: Path, force: bool) -> None:
    if force and out.exists():
        os.rename(out, old)  # a directory cannot be replaced by another one
    try:
        files.publish(new, out)
    except FileExistsError:
        raise RecordingError(
            f"{out} was created meanwhile: nothing was replaced{_set_aside(out, old)}"
        ) from None
    except BaseException:  # Ctrl-C too: restore the previous output
        if out.exists():
            _set_aside(out, old)
        elif old.exists():
            os.rename(old, out)
        raise


def _set_aside(out: Path, old: Path) -> str:
    """Move the previous output beside `out`, as that name is taken, and return a note on its place.

    Returns "" if there was no previous output.
    """
    if not old.exists():
        return ""
    aside = Path(tempfile.mkdtemp(prefix=f"{out.name}-before-", dir=out.parent))
    os.rename(old, aside / out.name)
    return f"; the previous output is {aside / out.name}"


def refuse_two_films(ordered: Sequence[File]) -> None:
    """Raise RecordingError if these files cannot form one film. Call before writing any output."""
    with_times = [file for file in ordered if file.end_ns]
    for before, after in itertools.pairwise(with_times):
        pause_ns = after.start_ns - before.end_ns
        names = f"{before.path.name} and {after.path.name}"
        if pause_ns > PAUSE_MOST_NS:
            hours = pause_ns / SECOND_NS / 3600
            raise RecordingError(
                f"between {names} is a pause of {hours:.1f} h: export them to two films"
            )
        if pause_ns < -OVERLAP_NS and before.recording != after.recording:
            raise RecordingError(
                f"{names} are two recordings of the same time, because the car's clock "
                "was set back: export them to two films"
            )


def require(module: str, install: str, what: str) -> None:
    """Raise RecordingError with installation advice if a library is missing."""
    try:
        importlib.import_module(module)
    except ImportError:
        raise RecordingError(f"{what} needs {module}: {install}") from None


def run(kind: str, out: Path, paths: Sequence[Path], force: bool, partial: bool = False) -> int:
    """Run `fpvcar export` and return the exit status.

    With `partial`, losses give status 0 instead of damage.INCOMPLETE.
    """
    say = sys.stderr
    report = Report(lambda text: print(f"fpvcar export: {text}", file=say))
    try:
        ordered = in_order(paths, report.say, report.lost)
        if kind == "mp4":
            refuse_two_films(ordered)
        total = sum(file.size for file in ordered) * (2 if kind == "mp4" else 1)
        progress = Progress(say, total, time.monotonic())
        with published(out, force, kind != "mp4") as new:
            report.out = lambda text: progress.say(f"fpvcar export: {text}")
            try:
                summary = _write(kind, ordered, new, progress, report)
            finally:
                progress.end()
            if kind != "mp4":
                _write_note(new / NOTE, report)
        if kind == "mp4":
            _write_note(out.with_name(f"{out.name}.{NOTE}"), report)
    except RecordingError as fault:
        print(f"fpvcar export: {fault}", file=say)
        return 1
    print(f"{out}: {summary}")
    if report.incomplete:
        verb = "accepted" if partial else "--partial accepts that"
        print(f"fpvcar export: recorded data is missing in {out}: {verb}", file=say)
    return report.status(partial)


def _write_note(path: Path, report: Report) -> None:
    """Write the losses of an export to a file, or remove an older note. Raises OSError."""
    path.unlink(missing_ok=True)
    if report.lines:
        path.write_text("\n".join([*report.lines, ""]), "utf-8")


def _write(
    kind: str, ordered: Sequence[File], new: Path, progress: Progress, report: Report
) -> str:
    """Write the export and return its summary. Raises RecordingError, OSError."""
    first_pass = one_by_one(ordered, report.say)
    if kind == "mp4":
        second_pass = one_by_one(ordered, lambda _: None)
        with contextlib.closing(first_pass), contextlib.closing(second_pass):
            passes = iter((first_pass, second_pass))
            film = Mp4Export(lambda: report.judged(next(passes)))
            return _write_film(film, new, progress, report)
    if kind == "parquet":
        install = "take --csv, or pip install pyarrow in a virtual environment"
        require("pyarrow", f"{install} (Debian has no package of it)", "--parquet")
    file = ParquetFile if kind == "parquet" else CsvFile
    with contextlib.closing(first_pass):
        rows, unread = write_tables(
            report.judged(first_pass), new, file, lambda done: progress.to(done, time.monotonic())
        )
    if not rows:
        raise RecordingError("these files contain no data for a table")
    if unread:
        report.lost(f"{unread} messages could not be read")
    return f"{len(rows)} tables, {sum(rows.values()):,} rows"


def _write_film(film: Mp4Export, new: Path, progress: Progress, report: Report) -> str:
    done = 0
    for done in film.plan():
        progress.to(done, time.monotonic())
    if not film.size:
        raise RecordingError("no picture was recorded in these files")
    with new.open("wb") as file:
        for piece in film.pieces():
            done += file.write(piece)
            progress.to(done, time.monotonic())
    for loss in film.missing:
        report.lost(str(loss))
    return f"{counted(film.pictures, 'picture')}, {film.seconds:.1f} s"
