"""Exports recordings for other programs: one film, or tables.

    files, in the order of their time -> film.Film, the pictures as they are -> OUT.mp4
                                      -> sheets.Sheets -> OUT/TOPIC.csv | .parquet

Only one file is open at a time: a day has more of them than a process may open. OUT
appears whole or not at all. What a file has lost is said on stderr, the rest exported.
"""

import contextlib
import importlib
import itertools
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from fpvcar import files
from fpvcar.recordings import names, reader
from fpvcar.recordings.film import PAUSE_MOST_NS, ExportError, Film
from fpvcar.recordings.losses import losses
from fpvcar.recordings.overview import overview_of
from fpvcar.recordings.progress import Progress
from fpvcar.recordings.reader import ReadError, Recording
from fpvcar.recordings.sheets import CsvFile, ParquetFile, write_tables
from fpvcar.units import SECOND_NS, counted

OVERLAP_NS = SECOND_NS


class File(NamedTuple):
    """A recording that is not open yet: its size in bytes, UTC of its first and its
    last message; `recording` is what it is a file of, "" if that is not known."""

    path: Path
    size: int
    start_ns: int
    end_ns: int
    recording: str


class Input(NamedTuple):
    """A recording that is open."""

    path: Path
    recording: Recording


def in_order(paths: Sequence[Path], say: Callable[[str], None]) -> list[File]:
    """Sorts recordings by their time; a folder stands for those in it.

    `say` hears of a file in a folder that is no recording, because power went; it is
    left out. Raises ReadError, OSError.
    """
    found: dict[Path, File] = {}
    for given in paths:
        for path in names.files([given], say):
            try:
                seen = overview_of(path)
            except ReadError as fault:
                if path == given:
                    raise
                say(str(fault))
                continue
            name = seen.about.recording if seen.about else ""
            found[path] = File(path, seen.size, seen.start_ns, seen.end_ns, name)
    return sorted(found.values(), key=lambda one: one.start_ns)


def one_by_one(
    ordered: Iterable[File], say: Callable[[str], None]
) -> Generator[Input, None, None]:
    """Opens each recording in turn, until the next one is asked for; `say` hears what
    it has lost. Raises ReadError, OSError."""
    for one in ordered:
        with reader.read(one.path) as recording:
            for words in losses(one.path, recording):
                say(words)
            yield Input(one.path, recording)


@contextlib.contextmanager
def published(out: Path, force: bool, folder: bool) -> Iterator[Path]:
    """Gives a place beside `out` to write to; it becomes `out` at the end, and only
    then.

    Raises ExportError if `out` is there and `force` is not given.
    """
    if out.exists() and not force:
        raise ExportError(f"{out} is there already: choose another name, or --force")
    if not out.parent.is_dir():
        raise ExportError(f"{out.parent} is no directory: make it first")
    place = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    new = place / "new"
    try:
        if folder:
            new.mkdir()
        yield new
        for one in [*new.iterdir(), new] if folder else [new]:
            files.sync(one)
        _put(new, out, place / "old", force)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _put(new: Path, out: Path, old: Path, force: bool) -> None:
    if force and out.exists():
        os.rename(out, old)  # a directory cannot be replaced by another one
    try:
        files.publish(new, out)
    except FileExistsError:
        raise ExportError(
            f"{out} has come meanwhile: nothing was replaced{_set_aside(out, old)}"
        ) from None
    except BaseException:  # Ctrl-C too: what was there stays
        if out.exists():
            _set_aside(out, old)
        elif old.exists():
            os.rename(old, out)
        raise


def _set_aside(out: Path, old: Path) -> str:
    """Moves what had been there beside `out`, whose name is taken, and says where it
    is; "" if nothing was."""
    if not old.exists():
        return ""
    aside = Path(tempfile.mkdtemp(prefix=f"{out.name}-before-", dir=out.parent))
    os.rename(old, aside / out.name)
    return f"; what was there before is {aside / out.name}"


def refuse_two_films(ordered: Sequence[File]) -> None:
    """Raises ExportError if these cannot be one film; before anything is written."""
    with_times = [one for one in ordered if one.end_ns]
    for before, after in itertools.pairwise(with_times):
        pause_ns = after.start_ns - before.end_ns
        names = f"{before.path.name} and {after.path.name}"
        if pause_ns > PAUSE_MOST_NS:
            hours = pause_ns / SECOND_NS / 3600
            raise ExportError(
                f"between {names} is a pause of {hours:.1f} h: export them to two films"
            )
        if pause_ns < -OVERLAP_NS and before.recording != after.recording:
            raise ExportError(
                f"{names} are two recordings of the same time, because the car's clock "
                "was set back: export them to two films"
            )


def require(module: str, install: str, what: str) -> None:
    """Raises ExportError with the next step where a library is missing."""
    try:
        importlib.import_module(module)
    except ImportError:
        raise ExportError(f"{what} needs {module}: {install}") from None


def run(kind: str, out: Path, paths: Sequence[Path], force: bool) -> int:
    """Runs `fpvcar export`; returns the exit status."""
    say = sys.stderr
    try:
        ordered = in_order(
            paths, lambda words: print(f"fpvcar export: {words}", file=say)
        )
        if kind == "mp4":
            refuse_two_films(ordered)
        whole = sum(one.size for one in ordered) * (2 if kind == "mp4" else 1)
        progress = Progress(say, whole, time.monotonic())
        with published(out, force, kind != "mp4") as new:
            try:
                words = _write(kind, ordered, new, progress)
            finally:
                progress.end()
    except (ExportError, ReadError) as fault:
        print(f"fpvcar export: {fault}", file=say)
        return 1
    print(f"{out}: {words}")
    return 0


def _write(kind: str, ordered: Sequence[File], new: Path, progress: Progress) -> str:
    """Writes the export; returns what to say of it. Raises ExportError, ReadError,
    OSError."""
    once = one_by_one(ordered, lambda words: progress.say(f"fpvcar export: {words}"))
    if kind == "mp4":
        again = one_by_one(ordered, lambda _: None)
        with contextlib.closing(once), contextlib.closing(again):
            passes = iter((once, again))
            return _write_film(Film(lambda: _each(next(passes))), new, progress)
    if kind == "parquet":
        require("pyarrow", "pip install pyarrow, or take --csv", "--parquet")
    file = ParquetFile if kind == "parquet" else CsvFile
    with contextlib.closing(once):
        rows, unread = write_tables(
            _each(once), new, file, lambda done: progress.to(done, time.monotonic())
        )
    if not rows:
        raise ExportError("there is nothing in these files that makes a table")
    left_out = f"; {unread} messages could not be read" if unread else ""
    return f"{len(rows)} tables, {sum(rows.values()):,} rows{left_out}"


def _each(inputs: Iterable[Input]) -> Iterator[Recording]:
    return (one.recording for one in inputs)


def _write_film(film: Film, new: Path, progress: Progress) -> str:
    done = 0
    for done in film.plan():
        progress.to(done, time.monotonic())
    if not film.size:
        raise ExportError("no picture was recorded in these files")
    with new.open("wb") as file:
        for piece in film.pieces():
            done += file.write(piece)
            progress.to(done, time.monotonic())
    missing = "".join(f"; {words}" for words in film.missing)
    return f"{counted(film.pictures, 'picture')}, {film.seconds:.1f} s{missing}"
