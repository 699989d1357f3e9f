"""Sidecars: their rows are those of a plain scan of the files, and they are always mended."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import msgspec
import pytest
from testkit import mcaps
from testkit.base_station.queries import OTHER, SESSION, QueryWorld, sample_rows, stop_rows
from testkit.base_station.stored import put
from testkit.mcaps import Drive, McapFile, logged

from fpvcar.recordings import reader
from fpvcar.recordings.messages import Reading
from fpvcar.runtime.texts import VERBATIM
from fpvstation import housekeeping
from fpvstation.query import keeper, sidecar
from fpvstation.query.rows import Sampler
from fpvstation.query.sidecar import Job
from fpvstation.store.store import Store, trash_of


def rows_of(world: QueryWorld, table: str, session: str, columns: str) -> list[tuple[object, ...]]:
    """Return columns of a session's sidecar, read by DuckDB alone."""
    files = f"{world.keeper.folder}/{table}/*/*.parquet"
    query = f"SELECT {columns} FROM read_parquet('{files}') WHERE session = ? ORDER BY time"
    return duckdb.execute(query, [session]).fetchall()


def assert_right(world: QueryWorld) -> None:
    """Assert that each session has one sidecar with the rows of its files."""
    assert len(world.sidecars("samples")) == len(world.sidecars("events")) == 2
    for session in (SESSION, OTHER):
        expected = [tuple(row.values()) for row in sample_rows(world.files(session))]
        columns = ", ".join(["epoch_us(time)", *list(next(sample_rows(world.files(session))))[1:]])
        assert rows_of(world, "samples", session, columns) == expected
        assert len(expected) >= 100
        with sidecar.texts(world.keeper.folder) as db:
            query = "SELECT count(*) FROM line JOIN source ON source = id WHERE stem LIKE ?"
            (lines,) = db.execute(query, (f"{session.replace('/', '~')}~%",)).fetchone()
        assert lines == len(rows_of(world, "events", session, "time"))


def test_rows_are_those_of_a_plain_scan(world: QueryWorld) -> None:
    assert list(world.keeper.run()) == []
    assert_right(world)
    for session in (SESSION, OTHER):
        stops = [row for row in rows_of(world, "events", session, "epoch_us(time), kind, cause")]
        expected = stop_rows(world.files(session))
        assert [(at_us, cause) for at_us, kind, cause in stops if kind == "stop"] == expected
        assert len(expected) >= 3
        others = rows_of(world, "events", session, "kind, driver, name, text")
        assert [row[1:] for row in others if row[0] == "driver"] == [
            ("Ann", "seat", "Ann: Ann takes the wheel"),
            (None, "seat", "no driver: Ann let go"),
            ("Bob", "seat", "Bob: Bob takes the wheel"),
        ]
        assert {row[2:] for row in others if row[0] == "fault"} == {
            ("computer", "The processor is hot."),
            ("camera", "camera: gone"),
            ("battery", "silent"),
            ("rear", "silent"),
        }
        assert [row[2:] for row in others if row[0] in ("mark", "log")] == [
            ("gate", "Stopped by Bob"),
            ("Ann", "look here"),
        ]


def test_nearest_sensor_of_each_side_counts_and_old_ranges_do_not(tmp_path: Path) -> None:
    made = [
        logged("/range/front", 0.0, Reading(20.0, 0.8)),
        logged("/range/rear", 0.0, Reading(-30.0, 0.0)),
        *mcaps.step_messages(Drive(1).go(2.5)),
    ]
    sampler = Sampler()
    with reader.read(McapFile(made).to(tmp_path / "one.mcap")) as recording:
        sampler.add(recording)
    sampler.end()
    began_ns = mcaps.BEGAN_NS
    for row in sampler.samples:
        fresh = row.time_ns - began_ns < 1_000_000_000
        assert row.front_m == (0.0 if fresh else None) and row.rear_m is None
    assert len(sampler.samples) >= 20


def test_session_settles_before_its_sidecar_is_written(
    world: QueryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "SETTLED_S", 3600.0)
    assert list(world.keeper.run()) == [] and not world.sidecars()
    sums = world.root / SESSION / "SHA256SUMS"
    os.utime(sums, (time.time() - 3601.0,) * 2)
    world.catalogue.sync()
    assert list(world.keeper.run()) == []
    assert [path.name.split("~")[2] for path in world.sidecars("samples")] == [SESSION[-23:]]


def test_late_segment_replaces_the_sidecar(asked: QueryWorld, tmp_path: Path) -> None:
    before = asked.sidecars()
    name = "Plague-20251121T200000Z-0003.mcap"
    steps = [one for one in mcaps.step_messages(Drive(7).go(20.0))]
    late = [one for one in steps if one.log_ns > mcaps.BEGAN_NS + 13 * 10**9]
    put(asked.store, name, McapFile(late, 3).to(tmp_path / name).read_bytes(), "Plague")
    asked.catalogue.sync()
    list(asked.keeper.run())
    assert_right(asked)
    assert len(set(asked.sidecars()) - set(before)) == 2


def damage(world: QueryWorld, what: str) -> None:
    """Lose or damage a part of the sidecars."""
    sample_file, event_file = world.sidecars("samples")[0], world.sidecars("events")[0]
    texts = world.keeper.folder / sidecar.TEXTS
    if what == "all":
        for path in (*world.sidecars(), texts):
            path.unlink()
    elif what == "texts damaged":
        texts.write_bytes(b"not a database " * 1000)
    elif what == "cut":
        os.truncate(sample_file, sample_file.stat().st_size - 1)
    else:
        {"samples": sample_file, "events": event_file, "texts": texts}[what].unlink()


@pytest.mark.parametrize(
    "what",
    [
        "all",
        "texts damaged",
        "cut",
        *(pytest.param(what, marks=pytest.mark.long) for what in ("samples", "events", "texts")),
    ],
)
def test_lost_and_damaged_parts_are_mended(asked: QueryWorld, what: str) -> None:
    damage(asked, what)
    (asked.keeper.folder / "samples/month=2025-11/.0123456789abcdef.new").write_bytes(b"half")
    restarted = asked.new_keeper()
    for _ in range(2):  # the first run removes a damaged one
        assert list(restarted.run()) == []
    assert_right(asked)
    assert not list(asked.keeper.folder.rglob(".*.new"))


def test_each_flipped_bit_is_found(asked: QueryWorld) -> None:
    dice = random.Random(1)
    for path in asked.sidecars():
        data, stem = path.read_bytes(), path.name.removesuffix(".parquet")
        for _ in range(20):
            at, bit = dice.randrange(len(data)), 1 << dice.randrange(8)
            path.write_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
            others = {other: other.read_bytes() for other in asked.sidecars()}
            assert sidecar.check(asked.keeper.folder, stem), f"{path.name} byte {at}"
            assert path not in asked.sidecars()
            for other, old in others.items():
                other.write_bytes(data if other == path else old)
            sidecar.index(asked.keeper.folder, stem, sidecar._events_in(asked.keeper.folder, stem))


@pytest.mark.soak
def test_kill_while_writing_leaves_no_damaged_sidecar(world: QueryWorld, soaking: bool) -> None:
    stem = sidecar.stem_of(SESSION, world.store.listed(SESSION))
    job = msgspec.json.encode(Job(stem, [str(path) for path in world.files()])) + b"\n"
    world.keeper.folder.mkdir(parents=True)
    dice, killed = random.Random(1), 0
    for _ in range(60 if soaking else 3):
        writer = subprocess.Popen(
            [sys.executable, "-m", sidecar.__name__, str(world.keeper.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with writer:
            assert writer.stdin and writer.stdout
            writer.stdin.write(b'{"stem":"Plague~2025-11-21~x~1~0"}\n')
            writer.stdin.flush()
            writer.stdout.readline()  # it is ready
            writer.stdin.write(job)
            writer.stdin.flush()
            time.sleep(dice.uniform(0.0, 0.15) if killed else 0.0)
            writer.send_signal(signal.SIGKILL)
            killed += not writer.stdout.readline()
        for one in sidecar.complete(world.keeper.folder):
            assert not sidecar.check(world.keeper.folder, one)
    assert killed
    assert list(world.keeper.run()) == []
    assert_right(world)


def test_writer_that_is_killed_costs_one_session(
    world: QueryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import sys, os\n"
        "for line in sys.stdin:\n"
        "    if 'Plague~' in line: os.kill(os.getpid(), 9)\n"
        "    print('null', flush=True)\n"
    )
    with monkeypatch.context() as patched:
        patched.setattr(keeper, "WRITER", (sys.executable, "-c", code))
        faults = list(world.keeper.run())
    assert list(map(str, faults)) == [f"{SESSION}: sidecar ended with status -9"]
    assert list(world.keeper.run()) == faults, "not again within the hour"
    assert list(world.new_keeper().run()) == []
    assert_right(world)


def test_ended_keeper_reports_no_fault_of_the_writer_that_it_killed(
    world: QueryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung = (sys.executable, "-c", "import time; time.sleep(60)")
    monkeypatch.setattr(keeper, "WRITER", hung)
    timer = threading.Timer(0.3, world.keeper.end)
    timer.start()
    assert list(world.keeper.run()) == []
    timer.join()


def test_failure_to_write_leaves_store_and_page_alone(world: QueryWorld) -> None:
    world.keeper.folder.parent.mkdir(exist_ok=True)
    world.keeper.folder.write_text("in the way")
    chore = housekeeping.Chore(VERBATIM(text="sidecars"), world.keeper.run)
    chore.once()
    assert str(world.keeper.folder) in str(chore.state.fault)
    assert world.catalogue.sync() == 0 and not world.catalogue.faults
    name = "Plague-20251122T200000Z-0001.mcap"
    put(world.store, name, world.files()[0].read_bytes(), "Plague")
    assert world.catalogue.sync() == 1


def test_evicted_session_keeps_its_sidecar_and_removed_one_loses_it(asked: QueryWorld) -> None:
    before = asked.sidecars()
    assert asked.store.evict(SESSION, lambda segments: True)
    asked.catalogue.sync()
    for one in (asked.keeper, asked.new_keeper()):
        assert list(one.run()) == []
        assert asked.sidecars() == before
    asked.store.remove(OTHER, trash_of(0.0))
    asked.catalogue.sync()
    list(asked.keeper.run())
    assert {path.name.split("~")[0] for path in asked.sidecars()} == {"Plague"}


def test_unreadable_segment_costs_its_own_rows(world: QueryWorld, tmp_path: Path) -> None:
    name = "Plague-20251121T200000Z-0003.mcap"
    put(world.store, name, b"no recording", "Plague")
    world.catalogue.sync()
    assert list(world.keeper.run()) == []
    rows = rows_of(world, "samples", SESSION, "time")
    assert len(rows) == len(list(sample_rows(world.files()[:2])))


def test_long_work_is_done_in_several_runs(
    world: QueryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "RUN_S", 0.0)
    for count in (1, 2):
        assert list(world.keeper.run()) == []
        assert len(world.sidecars("samples")) == count
        assert world.keeper.pause_s(60.0) == 1.0
    assert list(world.keeper.run()) == [] and world.keeper.pause_s(60.0) > 1.0


def test_end_stops_a_run(world: QueryWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "WRITER", (sys.executable, "-c", "import time; time.sleep(60)"))
    timer = threading.Timer(0.5, world.keeper.end)
    timer.start()
    began_s = time.monotonic()
    list(world.keeper.run())
    timer.join()
    assert time.monotonic() - began_s < 40.0


def test_store_without_parquet_has_no_sidecars(world: QueryWorld) -> None:
    chores = housekeeping.chores_of(Store(world.disk), world.root, None, world.catalogue)
    assert "sidecars" not in [str(chore.name) for chore in chores]
