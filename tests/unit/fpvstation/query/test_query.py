"""Queries: right results in each form, nothing written, and bounds on memory and time."""

import csv
import io
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest
from testkit.base_station.queries import OTHER, SESSION, QueryWorld, sample_rows, stop_rows
from testkit.harness import wait_for

from fpvstation.__main__ import main
from fpvstation.errors import StationError
from fpvstation.query import sidecar
from fpvstation.query.engine import Engine

Captured = pytest.CaptureFixture[str]


def ask(world: QueryWorld, sql: str, *options: str) -> int:
    return main(["query", sql, f"--store={world.root}", *options])


def rows_of(world: QueryWorld, sql: str) -> list[tuple[object, ...]]:
    return list(Engine(world.state, world.store.id).query(sql).rows)


def test_results_are_those_of_a_plain_scan(asked: QueryWorld) -> None:
    rows = {session: list(sample_rows(asked.files(session))) for session in (SESSION, OTHER)}
    near = sum(
        row["front_m"] is not None and row["front_m"] < 1.9 and abs(row["throttle_share"]) > 0.01
        for row in rows[SESSION] + rows[OTHER]
    )
    query = "SELECT count(*) FROM samples WHERE front_m < 1.9 AND abs(throttle_share) > 0.01"
    assert rows_of(asked, query) == [(near,)] and near > 2
    for session, car, month in ((SESSION, "Plague", "2025-11"), (OTHER, "Arrow", "2025-12")):
        expected = [(len(rows[session]), min(row["time_us"] for row in rows[session]))]
        for where in (f"session = '{session}'", f"car = '{car}'", f"month = '{month}'"):
            query = f"SELECT count(*), epoch_us(min(time)) FROM samples WHERE {where}"
            assert rows_of(asked, query) == expected, where
        query = f"SELECT epoch_us(time), cause FROM events WHERE kind = 'stop' AND car = '{car}'"
        assert sorted(rows_of(asked, query)) == sorted(stop_rows(asked.files(session)))
    found = rows_of(asked, "SELECT session, month, segments, drives, drivers FROM sessions")
    assert sorted((row[0], row[1], row[2]) for row in found) == [
        (OTHER, "2025-12", 2),
        (SESSION, "2025-11", 2),
    ]
    assert all(row[3] == 1 and row[4] == ["Ann", "Bob"] for row in found)
    (described,) = rows_of(asked, "SELECT count(*) FROM (DESCRIBE samples)")
    assert described == (22,)


@pytest.mark.parametrize("where", [f"session = '{SESSION}'", "car = 'Plague'", "month = '2025-11'"])
def test_filters_skip_the_files_of_other_sessions(asked: QueryWorld, where: str) -> None:
    (plan,) = rows_of(asked, f"EXPLAIN SELECT sum(front_m) FROM samples WHERE {where}")
    assert "Scanning Files: 1/2" in str(plan[1]), plan[1]


WRITES = """\
CREATE TABLE t (a INT)
CREATE VIEW v AS SELECT 1
CREATE OR REPLACE VIEW samples AS SELECT 1
INSERT INTO sessions VALUES (1)
UPDATE sessions SET car = 'x'
DELETE FROM sessions
DROP VIEW samples
DROP TABLE sessions
ALTER TABLE sessions ADD COLUMN a INT
TRUNCATE sessions
COPY sessions TO '{out}'
COPY (SELECT 1) TO '{out}' (FORMAT parquet)
COPY sessions FROM '{secret}'
EXPORT DATABASE '{out}'
ATTACH '{out}' AS d
DETACH memory
USE memory
INSTALL httpfs
LOAD httpfs
FORCE INSTALL spatial
UPDATE EXTENSIONS
SET memory_limit = '9GB'
SET enable_external_access = true
RESET memory_limit
RESET lock_configuration
SET VARIABLE a = 1
PRAGMA enable_profiling
PRAGMA memory_limit = '9GB'
CALL enable_logging()
CHECKPOINT
VACUUM
ANALYZE
BEGIN
COMMIT
PREPARE p AS SELECT 1
EXECUTE p
DEALLOCATE p
CREATE SECRET s (TYPE s3)
CREATE MACRO m() AS 1
CREATE SEQUENCE q
COMMENT ON TABLE sessions IS 'x'
EXPLAIN ANALYZE CREATE TABLE t (a INT)
EXPLAIN ANALYZE COPY (SELECT 1) TO '{out}'
EXPLAIN COPY (SELECT 1) TO '{out}'
SELECT 1; DROP TABLE sessions
SELECT 1; SELECT 2
WITH x AS (SELECT 1) INSERT INTO sessions SELECT * FROM x
"""
READS = """\
SELECT * FROM '{secret}'
FROM '{secret}'
SELECT * FROM read_text('{secret}')
SELECT * FROM read_blob('{secret}')
SELECT * FROM read_csv('{secret}')
SELECT * FROM read_json('{secret}')
SELECT * FROM read_parquet('{secret}')
SELECT * FROM parquet_metadata('{secret}')
SELECT * FROM sniff_csv('{secret}')
SELECT * FROM glob('{root}/*')
SELECT * FROM read_text('{inside}/../../../password.json')
SELECT * FROM glob('{inside}/../../*')
SELECT * FROM read_text('file:{secret}')
SELECT * FROM read_text('~/.bashrc')
SELECT * FROM query('COPY (SELECT 1) TO ''{out}''')
SELECT * FROM query_table('{secret}')
DESCRIBE '{secret}'
SUMMARIZE '{secret}'
WITH x AS (FROM read_text('{secret}')) SELECT * FROM x
SELECT (SELECT content FROM read_text('{secret}'))
SELECT getenv('HOME')
SELECT * FROM os
IMPORT DATABASE '{root}'
"""
NOTHING = ["", ";", "--", "-- only a comment", "SELECT", "hello", "SELECT * FROM nowhere", "\0"]


def refusals(world: QueryWorld, lines: str) -> list[str]:
    """Return the queries of some lines with the names of real files."""
    (world.state / "password.json").write_text("secret")
    names = {
        "secret": world.state / "password.json",
        "out": world.state.parent / "out",
        "root": world.root,
        "inside": world.keeper.folder,
    }
    return [line.format(**names) for line in lines.splitlines()]


def contents(folder: Path) -> dict[Path, bytes]:
    """Return all files of a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_query_that_would_write_or_read_elsewhere_is_refused(
    asked: QueryWorld, capsys: Captured
) -> None:
    writes, reads = refusals(asked, WRITES), refusals(asked, READS)
    before = contents(asked.state.parent)
    for sql in (*writes, *reads, *NOTHING):
        assert ask(asked, sql) == 1, sql
        said = capsys.readouterr()
        assert said.out == "" and said.err.startswith("fpvstation: "), sql
        assert "Traceback" not in said.err and "secret\n" not in said.err
        if sql in writes:
            assert "refused: queries only read, and this is " in said.err, sql
    assert contents(asked.state.parent) == before


def test_functions_with_effects_have_none(asked: QueryWorld) -> None:
    before = contents(asked.state.parent)
    out = asked.state.parent / "out"
    engine = Engine(asked.state, asked.store.id)
    for name in (
        f"enable_logging(storage := 'file', storage_path := '{out}')",
        f"enable_profiling(format := 'json', save_location := '{out}')",
        "checkpoint()",
        "force_checkpoint()",
        "duckdb_secrets()",
        f"import_database('{out}')",
        f"write_log('x', log_type := '{out}')",
    ):
        try:
            list(engine.query(f"SELECT * FROM {name}").rows)
        except StationError:
            continue
    assert not out.exists() and contents(asked.state.parent) == before
    assert len(rows_of(asked, "SELECT 1 FROM samples")) > 200


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS a",
        "WITH x AS (SELECT 1 AS a) SELECT a FROM x",
        "FROM samples SELECT count(*) AS a",
        "DESCRIBE samples",
        "SUMMARIZE events",
        "SHOW TABLES",
        "EXPLAIN SELECT 1",
        "explain analyze select 1",
        "VALUES (1)",
        "SELECT 1;",
        "/* why */ SELECT ';' -- and because",
    ],
)
def test_reading_statements_are_answered(asked: QueryWorld, sql: str, capsys: Captured) -> None:
    assert ask(asked, sql) == 0
    assert capsys.readouterr().out


KINDS = (
    "SELECT time, session, front_m, battery_v IS NULL AS unknown, ['a', NULL] AS list, "
    "DATE '2026-01-02' AS day, 1.50::DECIMAL(4,2) AS money, 'a,\"b\nc' AS text, "
    "100000000000000000000::HUGEINT AS huge, {'k': time} AS pair, 'NaN'::DOUBLE AS nan "
    "FROM samples WHERE car = 'Plague' ORDER BY time"
)


def test_forms_have_the_same_rows(asked: QueryWorld, capsys: Captured, tmp_path: Path) -> None:
    expected = list(sample_rows(asked.files()))
    assert ask(asked, KINDS, "--csv") == 0
    table = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert ask(asked, KINDS, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["columns"] == table[0] and not answer["more"]
    assert len(answer["rows"]) == len(table) - 1 == len(expected)
    first, row = table[1], answer["rows"][0]
    assert first[:2] == row[:2] and first[0].endswith("Z") and row[1] == SESSION
    fronts = [row["front_m"] for row in expected]
    assert [row[2] for row in answer["rows"]] == fronts
    assert [float(row[2]) if row[2] else None for row in table[1:]] == fronts
    assert row[4:9] == [["a", None], "2026-01-02", "1.50", 'a,"b\nc', str(10**20)]
    assert first[7] == 'a,"b\nc' and row[9] == {"k": row[0]} and row[10] is None
    out = tmp_path / "out.parquet"
    assert ask(asked, "SELECT time, front_m FROM samples", f"--parquet={out}") == 0
    (count,) = rows_of(asked, "SELECT count(*) FROM samples")
    assert duckdb.execute(f"SELECT count(*) FROM '{out}'").fetchone() == count
    assert ask(asked, "SELECT 1", f"--parquet={out}") == 1
    assert "exists: choose another name" in capsys.readouterr().err


def test_table_is_aligned_and_says_what_it_leaves_out(asked: QueryWorld, capsys: Captured) -> None:
    sql = "SELECT 'x' AS name, repeat('long', 30) AS text, 1/3 AS third FROM range(1200)"
    assert ask(asked, sql) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert len(lines) == 1001 and lines[0].split() == ["name", "text", "third"]
    assert {line.index("0.333333") for line in lines[1:]} == {lines[0].index("third")}
    assert "more than 1000 rows: --rows N, or --csv, prints more" in said.err
    for options, count in ((["--csv"], 1201), (["--csv", "--rows=7"], 8), (["--rows=1200"], 1201)):
        assert ask(asked, sql, *options) == 0
        assert len(capsys.readouterr().out.splitlines()) == count


def test_damaged_sidecar_is_named_and_left_out(asked: QueryWorld, capsys: Captured) -> None:
    damaged = asked.sidecars("samples")[0]
    for size in (0, 3, damaged.stat().st_size - 9):
        data = damaged.read_bytes()
        os.truncate(damaged, size)
        sql = "SELECT DISTINCT car FROM samples WHERE abs(throttle_share) >= 0"
        status = ask(asked, sql, "--csv")
        said = capsys.readouterr()
        assert status == 0 and said.out.split() == ["car", "Arrow"], said.err
        assert f"{SESSION}: its sidecar was damaged, and is left out" in said.err
        assert "1 session left out" in said.err
        assert list(asked.keeper.run()) == []
        assert damaged.read_bytes() == data
    assert ask(asked, "SELECT DISTINCT car FROM samples ORDER BY 1", "--csv") == 0
    assert capsys.readouterr().out.split() == ["car", "Arrow", "Plague"]


def test_store_without_sidecars_answers_and_says_so(world: QueryWorld, capsys: Captured) -> None:
    assert ask(world, "SELECT count(*) AS n FROM samples, events WHERE samples.month = ''") == 0
    said = capsys.readouterr()
    assert said.out.split() == ["n", "0"] and "2 sessions left out" in said.err
    assert main(["rebuild", f"--store={world.root}"]) == 0
    capsys.readouterr()
    assert ask(world, "SELECT DISTINCT month FROM samples ORDER BY 1") == 0
    said = capsys.readouterr()
    assert said.out.split() == ["month", "2025-11", "2025-12"] and not said.err


def test_rebuild_mends_a_flipped_bit(asked: QueryWorld, capsys: Captured) -> None:
    damaged = asked.sidecars("samples")[0]
    data = damaged.read_bytes()
    damaged.write_bytes(data[:900] + bytes([data[900] ^ 1]) + data[901:])
    assert main(["rebuild", f"--store={asked.root}"]) == 0
    assert damaged.read_bytes() == data


def test_missing_library_is_named(
    world: QueryWorld, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert ask(world, "SELECT 1") == 1
    assert capsys.readouterr().err == (
        "fpvstation: duckdb is not installed; pip install 'fpvcar[query]'\n"
    )


def started(world: QueryWorld, sql: str, *options: str) -> subprocess.Popen[str]:
    """Start a query in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "fpvstation", "query", sql, f"--store={world.root}", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def blocks_sigint(pid: int) -> bool:
    """Return whether a process waits for Ctrl-C itself, as it does during a query."""
    (mask,) = re.findall(r"SigBlk:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(mask, 16) >> (signal.SIGINT - 1) & 1)


ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000) b WHERE a.range % 7 = b.range"


@pytest.mark.parametrize("form", ["", "--csv", "--parquet"])
def test_ctrl_c_ends_a_query_at_once(asked: QueryWorld, tmp_path: Path, form: str) -> None:
    out = tmp_path / "new" / "out.parquet"
    out.parent.mkdir()
    options = [f"--parquet={out}"] if form == "--parquet" else [form] if form else []
    with started(asked, ENDLESS, *options) as process:
        wait_for(lambda: blocks_sigint(process.pid), "the query did not begin", 60.0)
        time.sleep(0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and not said and "Traceback" not in errors, errors
    assert not list(out.parent.iterdir())


def test_query_stays_within_its_memory(asked: QueryWorld) -> None:
    sql = "SELECT range AS a, repeat(range::VARCHAR, 9) AS b FROM range(3000000)"
    with started(asked, f"{sql} ORDER BY b", "--csv", "--memory=64") as process:
        said, errors = process.communicate(timeout=120)
    assert process.returncode == 1 and not said.strip().endswith("\n9")
    assert "the query needs more than 64 MB: read fewer months or columns" in errors
    with started(asked, f"SELECT count(*) FROM ({sql})", "--csv", "--memory=64") as process:
        said, errors = process.communicate(timeout=120)
    assert said.split() == ["count_star()", "3000000"], errors


@pytest.mark.long
def test_long_result_is_streamed(asked: QueryWorld) -> None:
    sql = "SELECT range AS a, repeat(range::VARCHAR, 300) AS b FROM range(100000)"
    usage = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    with started(asked, sql, "--csv", "--memory=64") as process:
        assert process.stdout is not None
        count = sum(1 for _ in process.stdout)
    assert count == 100_001 and process.returncode == 0
    most_kb = max(usage, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    assert most_kb < 400_000


def test_reader_that_ends_ends_the_query(asked: QueryWorld) -> None:
    with started(asked, "SELECT * FROM range(100000000)", "--csv") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "range\n"
        process.stdout.close()
        assert process.wait(20) == 1


ROOT = Path(__file__).resolve().parents[4]
DOCUMENTED = [
    line.strip()
    for line in (ROOT / "docs" / "query.md").read_text().splitlines()
    if re.match("    fpvstation (query|grep) ", line)
]


@pytest.mark.parametrize("line", DOCUMENTED)
def test_documented_command_works(asked: QueryWorld, line: str, capsys: Captured) -> None:
    words = shlex.split(line, comments=True)[1:]
    words = [word for word in words if not word.startswith(">")]
    assert main([*words, f"--store={asked.root}"]) in ({0, 1} if words[0] == "grep" else {0})
    assert not capsys.readouterr().err


def test_documented_columns_are_those_of_the_tables(asked: QueryWorld) -> None:
    text = (ROOT / "docs" / "query.md").read_text()
    for table in ("samples", "events", "sessions"):
        part = text.partition(f"\n| {table} | type |")[2].partition("\n\n")[0]
        cells = [line.split("|")[1] for line in part.splitlines()[2:]]
        documented = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
        columns = {row[0] for row in rows_of(asked, f"DESCRIBE {table}")}
        assert documented == columns, table
    assert f"### Columns, version {sidecar.VERSION}\n" in text
