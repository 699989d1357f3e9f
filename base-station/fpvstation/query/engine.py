"""Read-only SQL over all sidecars of a store, in DuckDB.

    samples, events    views of the Parquet files; a filter on month, car or session skips files
    sessions           table from the catalogue, made only if the query reads it

DuckDB may read the sidecars and no other file, write none, load no extension, and no setting can be
changed. Only a query is accepted: the types of its statements are those of DuckDB's own parser.
"""

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fpvcar.recordings.export.table_writers import has_parquet
from fpvcar.runtime.texts import Phrase, Text
from fpvstation.catalogue.catalogue import FILE
from fpvstation.errors import StationError
from fpvstation.query import sidecar
from fpvstation.query.keeper import folder_of
from fpvstation.query.sidecar import SUFFIX, TABLES, VERSION, library

QUERY_MEMORY = Phrase(
    "query_memory",
    "the query needs more than {memory} MB: read fewer months or columns, or give it more "
    "with --memory MB",
)
QUERY_DAMAGED = Phrase(
    "query_damaged", "{session}: its sidecar was damaged, and is removed: ask again"
)

MEMORY_MB, MEMORY_LEAST_MB = 512, 32
BATCH = 1000
"""Rows fetched at a time."""
STEM = re.compile(rf"[\w.~-]+~{VERSION}~[0-9a-f]{{16}}", re.ASCII)
REFUSED = (
    "refused: queries only read, and this is {}: write one query that begins with SELECT, WITH, "
    "FROM, DESCRIBE, SUMMARIZE or EXPLAIN"
)
ZONED, QUOTE = "TIMESTAMP WITH TIME ZONE", '"'
SESSIONS = {
    "session": "VARCHAR",
    "car": "VARCHAR",
    "month": "VARCHAR",
    "start": "TIMESTAMP",
    "seconds": "DOUBLE",
    "drives": "BIGINT",
    "drivers": "VARCHAR[]",
    "titles": "VARCHAR[]",
    "stops": "BIGINT",
    "metres": "DOUBLE",
    "segments": "BIGINT",
    "bytes": "BIGINT",
}
"""Columns of `sessions`. Times count drives only, without parked ranges."""


class Result(NamedTuple):
    """Result of a query: its columns, and its rows as they arrive, or as batches of pyarrow."""

    columns: list[str]
    rows: Iterator[tuple[Any, ...]]
    batches: Callable[[], Any]


class _Drive(msgspec.Struct):
    """Figures of a drive in the catalogue."""

    start_ms: float
    seconds: float
    parked: bool
    drivers: list[str]
    stops: dict[str, int]
    metres: float | None
    title: str = ""


class Engine:
    """Queries over one store. `state` is the station's state directory."""

    def __init__(
        self, state: Path, store_id: str, memory_mb: int = MEMORY_MB, threads: int | None = None
    ) -> None:
        """Raises StationError if a library is missing, or the catalogue is that of another
        store."""
        self._duckdb = library("duckdb")
        if not has_parquet():  # its import takes 0.2 s, and few queries use it
            library("pyarrow")
        self._folder, self._state = folder_of(state, store_id), state
        self._store_id, self._memory_mb, self._threads = store_id, memory_mb, threads
        self.damaged: list[str] = []
        """Sessions whose sidecar was found damaged, and removed."""

    def query(self, sql: str) -> Result:
        """Start a query. Raises StationError for a query that is wrong, refused or too large."""
        try:
            while True:
                try:
                    db = self._connection(sql)
                    cursor = db.execute(_without_zones(db, sql))
                    columns = [column[0] for column in cursor.description]
                    return Result(columns, self._rows(cursor), cursor.to_arrow_reader)
                except self._duckdb.Error as fault:
                    if not self._removed_damage(str(fault)):
                        raise
        except self._duckdb.Error as fault:
            raise self._refusal(fault) from None

    def missing(self) -> int:
        """Return the number of the catalogue's sessions without a sidecar. Raises StationError."""
        return left_out(self._state, self._store_id, sidecar.complete(self._folder))

    def _rows(self, cursor: Any) -> Iterator[tuple[Any, ...]]:
        try:
            while rows := cursor.fetchmany(BATCH):
                yield from rows
        except self._duckdb.Error as fault:
            self._removed_damage(str(fault))
            raise self._refusal(fault) from None

    def _refusal(self, fault: Exception) -> StationError:
        text = str(fault)
        if isinstance(fault, self._duckdb.OutOfMemoryException):
            return StationError(QUERY_MEMORY(memory=self._memory_mb))
        if self.damaged:
            return StationError(QUERY_DAMAGED(session=self.damaged[-1]))
        if isinstance(fault, self._duckdb.PermissionException):
            text = f"refused: {text}: a query reads samples, events and sessions only"
        return StationError(text)

    def _check(self, db: Any, sql: str) -> None:
        """Refuse all but one reading statement. Raises StationError, duckdb.Error."""
        statements = db.extract_statements(sql)
        # DuckDB itself adds CREATE TYPE, without a text, before a PIVOT.
        while len(statements) > 1 and not statements[0].query and _kind(statements[0]) == "CREATE":
            statements = statements[1:]
        if len(statements) != 1:
            raise StationError(REFUSED.format(f"{len(statements)} statements"))
        kind = _kind(statements[0])
        if kind == "EXPLAIN":  # EXPLAIN ANALYZE runs its statement
            words = [*sql.split(None, 2), "", ""]
            analyze = words[1].upper() == "ANALYZE"
            return self._check(db, words[2] if analyze else " ".join(words[1:3]))
        if kind != "SELECT":
            raise StationError(REFUSED.format(kind))
        return None

    def _connection(self, sql: str) -> Any:
        """Return a connection with all views, which can read no other file."""
        config = {
            "memory_limit": f"{self._memory_mb}MB",
            "temp_directory": "",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
            **({"threads": str(self._threads)} if self._threads else {}),
        }
        db = self._duckdb.connect(":memory:", config=config)
        db.execute(f"SET allowed_directories = [{quoted(f'{self._folder}/')}]")
        db.execute("SET enable_external_access = false")
        db.execute("SET TimeZone = 'UTC'")  # that of now(), and of a comparison with it
        db.execute("SET lock_configuration = true")
        # The parser runs IMPORT DATABASE and PRAGMA: it is the one of the locked database.
        self._check(db, sql)
        for table in TABLES:
            files = f"{self._folder}/{table.name}/month=*/*~{VERSION}~*{SUFFIX}"
            if next((self._folder / table.name).glob(f"month=*/*~{VERSION}~*{SUFFIX}"), None):
                source = (
                    f"read_parquet({quoted(files)}, filename = true, "
                    "hive_partitioning = true, hive_types = {'month': VARCHAR})"
                )
                part = "split_part(parse_filename(filename), '~', {})"
                parts = [part.format(number) for number in (1, 2, 3)]
                db.execute(
                    f"CREATE VIEW {table.name} AS SELECT * EXCLUDE (filename) REPLACE "
                    f"({parts[0]} AS car, concat_ws('/', {', '.join(parts)}) AS session) "
                    f"FROM {source}"
                )
            else:
                kinds = {int: "TIMESTAMP", str: "VARCHAR", float: "DOUBLE"}
                columns = {name: kinds[kind] for name, kind in table.columns.items()}
                db.execute(_create(table.name, {**columns, "month": "VARCHAR"}))
        db.execute(_create("sessions", SESSIONS))
        if "sessions" in sql.lower():
            db.register("catalogued", self._sessions())
            db.execute("INSERT INTO sessions SELECT * FROM catalogued")
            db.unregister("catalogued")
        return db

    def _sessions(self) -> Any:
        """Return `sessions` as a table of pyarrow. Raises StationError."""
        arrow = library("pyarrow")
        kinds = {
            "VARCHAR": arrow.string(),
            "VARCHAR[]": arrow.list_(arrow.string()),
            "TIMESTAMP": arrow.timestamp("us"),
            "DOUBLE": arrow.float64(),
            "BIGINT": arrow.int64(),
        }
        rows = [dict(zip(SESSIONS, row, strict=True)) for row in self._session_rows()]
        schema = arrow.schema([(name, kinds[kind]) for name, kind in SESSIONS.items()])
        return arrow.Table.from_pylist(rows, schema=schema)

    def _session_rows(self) -> Iterator[Sequence[object]]:
        decode = msgspec.json.Decoder(_Drive).decode
        drives: dict[str, list[_Drive]] = {}
        with catalogue(self._state, self._store_id) as db:
            query = "SELECT session, shown.drive FROM drive JOIN shown USING (at) ORDER BY at"
            for session, drive in db.execute(query):
                drives.setdefault(session, []).append(decode(drive))
            query = "SELECT session, count(*), sum(bytes) FROM segment GROUP BY session"
            for session, segments, size in db.execute(query).fetchall():
                all_of = drives.get(session, [])
                driven = [drive for drive in all_of if not drive.parked]
                car, day, _ = session.split("/")
                start_ms = min((drive.start_ms for drive in all_of), default=None)
                yield (
                    session,
                    car,
                    day[:7],
                    None if start_ms is None else _utc(start_ms),
                    sum(drive.seconds for drive in driven),
                    len(driven),
                    list(dict.fromkeys(name for drive in driven for name in drive.drivers)),
                    [drive.title for drive in all_of if drive.title],
                    sum(sum(drive.stops.values()) for drive in driven),
                    sum(drive.metres or 0.0 for drive in driven),
                    segments,
                    size,
                )

    def _removed_damage(self, fault: str) -> bool:
        """Remove the sidecars that a fault names and that are damaged; return whether there were
        any."""
        before = len(self.damaged)
        for stem in set(STEM.findall(fault)):
            paths = sidecar.paths_of(self._folder, stem)
            if not all(path.exists() for path in paths) or sidecar.check(self._folder, stem):
                sidecar.remove(self._folder, stem)
                self.damaged.append(sidecar.session_of(stem))
        return len(self.damaged) > before


@contextlib.contextmanager
def catalogue(state: Path, store_id: str) -> Iterator[sqlite3.Connection]:
    """Open the catalogue for reading. Raises StationError if it is missing, damaged, or that of
    another store."""
    path = state / FILE
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            if db.execute("SELECT store FROM about").fetchone() != (store_id,):
                raise sqlite3.DatabaseError
            yield db
    except sqlite3.Error:
        raise StationError(
            Text("query_unlisted", "{path} does not list this store: fpvstation rebuild", path=path)
        ) from None


def left_out(state: Path, store_id: str, stems: Iterable[str]) -> int:
    """Return the number of the catalogue's sessions that none of the sidecars belongs to. Raises
    StationError."""
    sessions = set(map(sidecar.session_of, stems))
    with catalogue(state, store_id) as db:
        listed = "SELECT 1 FROM segment WHERE segment.session = session.path"
        rows = db.execute(f"SELECT path FROM session WHERE EXISTS ({listed})")
        return sum(session not in sessions for (session,) in rows)


def _kind(statement: Any) -> str:
    return str(statement.type.name)


def _without_zones(db: Any, sql: str) -> str:
    """Return the query with each time with a zone, such as now(), as a plain time in UTC: DuckDB
    needs the library pytz for the others."""
    if sql.split(None, 1)[0].upper() == "EXPLAIN":
        return sql
    relation = db.sql(sql)  # does not run it
    kinds = list(map(str, relation.types))
    if not any(ZONED in kind for kind in kinds):
        return sql
    cells = [
        f"CAST(#{at} AS {kind.replace(ZONED, 'TIMESTAMP')})" if ZONED in kind else f"#{at}"
        for at, kind in enumerate(kinds, 1)
    ]
    named = (
        f'{cell} AS "{name.replace(QUOTE, 2 * QUOTE)}"'
        for cell, name in zip(cells, relation.columns, strict=True)
    )
    return str(relation.project(", ".join(named)).sql_query())


def _utc(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1000.0, UTC).replace(tzinfo=None)


def _create(name: str, columns: dict[str, str]) -> str:
    return f"CREATE TABLE {name} ({', '.join(f'{key} {kind}' for key, kind in columns.items())})"


def quoted(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
