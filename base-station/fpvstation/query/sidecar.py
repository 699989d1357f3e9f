"""Sidecars of sessions: two Parquet files each, beside the catalogue, and an index of all texts.

    samples/month=2026-11/CAR~DAY~SESSION~1~SUM.parquet
    events/month=2026-11/CAR~DAY~SESSION~1~SUM.parquet
    texts.sqlite                        texts of events, each once; checksums of the files

1 is VERSION, and SUM a checksum of the session's segments: a name tells whether its file is
current. A sidecar has nothing that the store does not; a lost one is written again.

    python -m fpvstation.query.sidecar FOLDER

reads a Job per line from stdin, and prints its fault, or an empty line.
"""

import contextlib
import hashlib
import importlib.util
import io
import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import msgspec

from fpvcar.recordings import reader
from fpvcar.recordings.mcap.parsing import RecordError, RecordingError
from fpvcar.runtime import files
from fpvcar.runtime.texts import NOT_INSTALLED, SAYS, VERBATIM, Text, fault_text
from fpvstation.errors import INTERNAL, StationError
from fpvstation.query.rows import EventRow, Sampler, SampleRow
from fpvstation.store.sums_file import StoredSegment

VERSION = 1
SAMPLES, EVENTS, TEXTS = "samples", "events", "texts.sqlite"
SUFFIX = ".parquet"
GROUP_ROWS = 12_000
"""Rows of a row group, 20 minutes; a query skips groups by their smallest and largest values."""
BUSY_S = 30.0
SCHEMA = """
    CREATE TABLE IF NOT EXISTS source (
        id INTEGER PRIMARY KEY, stem TEXT NOT NULL UNIQUE, digests TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS text (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
    CREATE TABLE IF NOT EXISTS line (
        text INTEGER NOT NULL, time_us INTEGER NOT NULL, source INTEGER NOT NULL,
        kind TEXT NOT NULL, PRIMARY KEY (text, time_us, source, kind)) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS line_source ON line (source);
"""
LIBRARIES = "pip install 'fpvcar[query]'"
PACKAGED = (
    "sudo -Hu fpvstation pip install --user --break-system-packages 'duckdb==1.5.5' 'pyarrow>=15'"
)


class Job(msgspec.Struct):
    """Work for the writer: a session and its segments, or, without segments, a sidecar to check."""

    stem: str
    segments: list[str] = []


def to_install() -> str:
    """Return the command that installs the libraries of the extra `query`, "" if they are there."""
    if all(importlib.util.find_spec(name) for name in ("duckdb", "pyarrow")):
        return ""
    return PACKAGED if sys.prefix == sys.base_prefix else f"{sys.prefix}/bin/{LIBRARIES}"


def library(name: str) -> Any:
    """Return a library of the extra `query`. Raises StationError if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing = NOT_INSTALLED(program=name, command=LIBRARIES)
        raise StationError(missing) from None


def stem_of(session: str, segments: Iterable[StoredSegment]) -> str:
    """Return the name of a session's sidecar without its suffix: its stem."""
    lines = sorted(f"{segment.path} {segment.sha256}\n" for segment in segments)
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    return f"{session.replace('/', '~')}~{VERSION}~{digest[:16]}"


def session_of(stem: str) -> str:
    """Return the session of a sidecar: CAR/DAY/SESSION."""
    return "/".join(stem.split("~")[:3])


def paths_of(folder: Path, stem: str) -> list[Path]:
    """Return both files of a sidecar, the one that is written last first."""
    month = f"month={session_of(stem).split('/')[1][:7]}"
    return [folder / table / month / f"{stem}{SUFFIX}" for table in (SAMPLES, EVENTS)]


def complete(folder: Path) -> set[str]:
    """Return the stems of all sidecars with both files, of every version. Raises OSError."""
    names = [
        {name for month in (folder / table).glob("month=*") for name in os.listdir(month)}
        for table in (SAMPLES, EVENTS)
    ]
    both = set.intersection(*names)
    return {name.removesuffix(SUFFIX) for name in both if name.endswith(SUFFIX)}


def indexed(folder: Path) -> set[str]:
    """Return the stems of all sidecars in the index of texts. Raises sqlite3.Error."""
    with texts(folder) as db:
        return {stem for (stem,) in db.execute("SELECT stem FROM source")}


@contextlib.contextmanager
def texts(folder: Path) -> Iterator[sqlite3.Connection]:
    """Yield the index of texts, in a transaction. A damaged one is replaced by an empty one.
    Raises StationError if it cannot be opened."""
    path = folder / TEXTS
    for last in (False, True):
        db = sqlite3.connect(path, timeout=BUSY_S)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.executescript(SCHEMA)
            break
        except sqlite3.DatabaseError as fault:
            db.close()
            if last or isinstance(fault, sqlite3.OperationalError):
                raise StationError(SAYS(place=path, reason=fault)) from None
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
    try:
        with db:
            yield db
    finally:
        db.close()


def remove(folder: Path, stem: str) -> None:
    """Remove a sidecar. Raises OSError, sqlite3.Error."""
    for path in paths_of(folder, stem):
        path.unlink(missing_ok=True)
    with texts(folder) as db:
        _forget(db, stem)


class Table(NamedTuple):
    """Table of a sidecar, and the type of its rows."""

    name: str
    row: type[SampleRow] | type[EventRow]

    @property
    def columns(self) -> dict[str, type]:
        """Return the types of all columns but `month`."""
        hints = get_type_hints(self.row)
        kinds = {name: str if hint in (str, str | None) else float for name, hint in hints.items()}
        del kinds["time_ns"]
        return {"time": int, "session": str, "car": str, **kinds}

    def schema(self, stem: str = "") -> Any:
        """Return the schema of pyarrow, with version and session as metadata."""
        arrow = library("pyarrow")
        kinds = {str: arrow.string(), float: arrow.float64(), int: arrow.timestamp("us")}
        metadata = {"fpvstation_version": str(VERSION), "session": session_of(stem) if stem else ""}
        fields = [(name, kinds[kind]) for name, kind in self.columns.items()]
        return arrow.schema(fields, metadata=metadata)

    def packed(self, stem: str, rows: Sequence[SampleRow | EventRow]) -> bytes:
        """Return the content of a Parquet file."""
        arrow, session = library("pyarrow"), session_of(stem)
        times, *cells = zip(*rows, strict=True) if rows else [()] * len(self.row._fields)
        names = ([session] * len(rows), [session.partition("/")[0]] * len(rows))
        schema = self.schema(stem)
        values = [[time_ns // 1000 for time_ns in times], *names, *cells]
        columns = [
            arrow.array(column, field.type) for column, field in zip(values, schema, strict=True)
        ]
        out = io.BytesIO()
        library("pyarrow.parquet").write_table(
            arrow.Table.from_arrays(columns, schema=schema),
            out,
            compression="zstd",
            row_group_size=GROUP_ROWS,
            write_page_checksum=True,
            store_schema=False,  # the footer of each file is read by each query
        )
        return out.getvalue()


TABLES = (Table(SAMPLES, SampleRow), Table(EVENTS, EventRow))


def write(folder: Path, job: Job) -> None:
    """Write the sidecar of a session, without the segments that are no recordings. Older sidecars
    of the session are removed before. Raises OSError, sqlite3.Error."""
    sampler = Sampler()
    for path in map(Path, job.segments):
        with contextlib.suppress(RecordingError, RecordError), reader.read(path) as recording:
            sampler.add(recording)
    sampler.end()
    events = sorted(sampler.events, key=attrgetter("time_ns"))
    contents = TABLES[0].packed(job.stem, sampler.samples), TABLES[1].packed(job.stem, events)
    packed = list(zip(paths_of(folder, job.stem), contents, strict=True))
    session = job.stem.rsplit("~", 2)[0]
    for path, _ in packed:
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob(f"{session}~*{SUFFIX}"):
            remove(folder, old.name.removesuffix(SUFFIX))
    for path, data in reversed(packed):
        files.write_whole(path, [data])
    index(folder, job.stem, events)


def index(folder: Path, stem: str, events: Iterable[EventRow]) -> None:
    """Replace the lines of a session in the index of texts. Raises OSError, sqlite3.Error."""
    digests = _digests(folder, stem)
    with texts(folder) as db:
        _forget(db, stem)
        query = "INSERT INTO source (stem, digests) VALUES (?, ?) RETURNING id"
        (source,) = db.execute(query, (stem, digests))
        for event in events:
            text = f"{event.name}: {event.text}"
            db.execute("INSERT OR IGNORE INTO text (text) VALUES (?)", (text,))
            db.execute(
                "INSERT OR IGNORE INTO line SELECT id, ?, ?, ? FROM text WHERE text = ?",
                (event.time_ns // 1000, source[0], event.kind, text),
            )


def _forget(db: sqlite3.Connection, stem: str) -> None:
    db.execute("DELETE FROM line WHERE source = (SELECT id FROM source WHERE stem = ?)", (stem,))
    db.execute("DELETE FROM source WHERE stem = ?", (stem,))


def _digests(folder: Path, stem: str) -> str:
    digests = []
    for path in paths_of(folder, stem):
        with path.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    return " ".join(digests)


def check(folder: Path, stem: str) -> str:
    """Read a whole sidecar, and compare it with its checksums; without those, with the CRC of each
    page, and index it. Remove a damaged one; return its fault, or "". Raises OSError,
    sqlite3.Error."""
    with texts(folder) as db:
        row = db.execute("SELECT digests FROM source WHERE stem = ?", (stem,)).fetchone()
    try:
        if row:
            fault = "" if row[0] == _digests(folder, stem) else "its checksum differs"
        else:
            index(folder, stem, _events_in(folder, stem))
            fault = ""
    except (OSError, library("pyarrow").ArrowException) as error:
        fault = str(error) or repr(error)
    if fault:
        remove(folder, stem)
    return fault


def _events_in(folder: Path, stem: str) -> list[EventRow]:
    """Read both files of a sidecar with their CRCs; return the events. Raises OSError and
    ArrowException."""
    parquet = library("pyarrow.parquet")
    for path in paths_of(folder, stem):
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read()
    rows = table.set_column(0, "time", table["time"].cast("int64")).to_pylist()
    kept = EventRow._fields[1:]
    return [EventRow(row["time"] * 1000, *(row[name] for name in kept)) for row in rows]


def main(folder: Path) -> None:
    """Do the jobs on stdin until it ends."""
    for line in sys.stdin:
        job = msgspec.json.decode(line, type=Job)
        fault: Text | None = None
        try:
            if job.segments:
                write(folder, job)
            elif damage := check(folder, job.stem):
                fault = VERBATIM(text=damage)
        except (OSError, sqlite3.Error, StationError, MemoryError) as error:
            fault = fault_text(error) if str(error) else VERBATIM(text=repr(error))
        except Exception as error:  # a defect must cost this session only
            fault = INTERNAL(reason=repr(error))
        print(msgspec.json.encode(fault).decode(), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
