"""Times of a query are UTC on every machine and in every form; PIVOT is one statement."""

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from testkit.base_station.queries import QueryWorld

from fpvstation.__main__ import main

Captured = pytest.CaptureFixture[str]
ZONED = """SELECT max(time) AS plain, max(time)::TIMESTAMPTZ AS zoned,
    [max(time)::TIMESTAMPTZ] AS list, {'a "b"': max(time)::TIMESTAMPTZ} AS "a ""b"" c",
    max(time) = max(time)::TIMESTAMPTZ AS same, today() = (now() AT TIME ZONE 'UTC')::DATE AS day,
    TIMESTAMP '2026-01-01' = TIMESTAMPTZ '2026-01-01 00:00:00+00' AS compared,
    strftime(TIMESTAMPTZ '2026-07-01 00:00:00+00' AT TIME ZONE 'Europe/Berlin', '%H') AS there
    FROM samples -- a comment
    ;"""


def test_times_are_utc_on_a_machine_with_another_zone(asked: QueryWorld) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "fpvstation", "query", ZONED, f"--store={asked.root}", "--json"],
        env={**os.environ, "TZ": "Asia/Kathmandu"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    plain, zoned, listed, pair, *rest = answer["rows"][0]
    assert answer["columns"][:4] == ["plain", "zoned", "list", 'a "b" c']
    assert plain == zoned == listed[0] == pair['a "b"'] and plain.startswith("2025-11-21T20:00:1")
    assert plain.endswith("Z") and rest == [True, True, True, "02"]


@pytest.mark.parametrize("sql", ["SELECT now()", "SELECT time, now() FROM samples LIMIT 2"])
def test_now_is_printed(asked: QueryWorld, sql: str, capsys: Captured) -> None:
    assert main(["query", sql, f"--store={asked.root}", "--csv"]) == 0
    assert all(line.endswith("Z") for line in capsys.readouterr().out.splitlines()[1:])


def test_times_in_parquet_have_the_zone(asked: QueryWorld, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    sql = "SELECT time, now() AS now, time::DATE AS day, session FROM samples"
    assert main(["query", sql, f"--store={asked.root}", f"--parquet={out}"]) == 0
    kinds = [row[:2] for row in duckdb.execute(f"DESCRIBE FROM '{out}'").fetchall()]
    zoned = "TIMESTAMP WITH TIME ZONE"
    assert kinds == [("time", zoned), ("now", zoned), ("day", "DATE"), ("session", "VARCHAR")]


PIVOT = "PIVOT events ON kind USING count(*) GROUP BY car"


@pytest.mark.parametrize("sql", [PIVOT, f"SELECT * FROM ({PIVOT}) ORDER BY ALL;"])
def test_pivot_is_one_statement(asked: QueryWorld, sql: str, capsys: Captured) -> None:
    assert main(["query", sql, f"--store={asked.root}", "--csv"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert {"car", "stop", "mark"} <= set(head.split(",")) and len(rows) == 2


@pytest.mark.parametrize("sql", [f"CREATE TABLE t (a INT); {PIVOT}", f"{PIVOT}; {PIVOT}"])
def test_statement_beside_pivot_is_refused(asked: QueryWorld, sql: str, capsys: Captured) -> None:
    assert main(["query", sql, f"--store={asked.root}"]) == 1
    assert "refused: queries only read, and this is " in capsys.readouterr().err
