"""Jobs over a whole store on Dask: a scheduler, workers and clients as processes."""

import csv
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pytest
from testkit.base_station.batch import (
    Cluster,
    children_of,
    fill,
    finished,
    members,
    planted_times,
    result_of,
)
from testkit.base_station.queries import sample_rows
from testkit.harness import wait_for

from fpvcar.__main__ import main as fpvcar
from fpvstation.__main__ import main as fpvstation
from fpvstation.catalogue.catalogue import Catalogue
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store

pytestmark = pytest.mark.e2e
DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "query.md"
COUNT = 9
LINE = re.compile(r"  (\S+Z) http://localhost:8100/#(\S+)&at=(\S+) throttle .*, rerun 0.125")
DRIVES = 200
KILL_EVERY_S = 10.0


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of nine sessions."""
    root = tmp_path_factory.mktemp("recorded") / "store"
    fill(root, COUNT)
    return root


@pytest.fixture
def root(recorded: Path, tmp_path: Path) -> Path:
    return shutil.copytree(recorded, tmp_path / "store")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run a scheduler and three workers."""
    made = Cluster(tmp_path_factory.mktemp("cluster") / "home")
    try:
        made.add_workers(3)
        yield made
    finally:
        made.end()


@pytest.fixture
def cluster(running: Cluster) -> Cluster:
    """Return the cluster without plants."""
    running.plant()
    return running


def sessions_of(root: Path) -> list[str]:
    return sorted(str(path.parent.relative_to(root)) for path in root.glob("*/*/*/SHA256SUMS"))


def us_of(utc: str) -> int:
    parsed = datetime.strptime(utc[:26], "%Y-%m-%dT%H:%M:%S.%f").replace(tzinfo=UTC)
    return round(parsed.timestamp() * 1e6)


def listed_drives(root: Path) -> list[tuple[str, str, float]]:
    """Return session, id and start, ms, of the drives that the page lists."""
    store = Store(Folder(root))
    store.open("")
    catalogue = Catalogue(root.parent / "listed.sqlite", root, store, store.id)
    catalogue.open()
    catalogue.sync()
    drives = catalogue.drives_in(store.sessions())
    catalogue.close()
    return [(session, one.id, one.start_ms) for session in drives for one in drives[session]]


def check_planted(root: Path, out: str) -> None:
    """Check that a report has exactly the steps that the plant "gate" changes, and that a link
    opens the page's drive a second earlier."""
    found = dict[str, list[int]]()
    sessions = {drive: (session, ms) for session, drive, ms in listed_drives(root)}
    for utc, address, at in LINE.findall(out):
        session, start_ms = sessions[unquote(address)]
        found.setdefault(session, []).append(us_of(utc))
        at_s = (us_of(utc) / 1e3 - start_ms) / 1e3 - 1.0
        assert float(at) == pytest.approx(max(0.0, at_s), abs=0.06)
    expected = {
        session: times for session in sessions_of(root) if (times := planted_times(root, session))
    }
    assert {name: sorted(times) for name, times in found.items()} == expected
    bad = [session for session, result in result_of(out, sessions_of(root)).items()]
    assert sorted(bad) == sorted(expected)
    assert 0 < len(expected) < len(sessions_of(root))
    good = len(sessions_of(root)) - len(expected)
    assert f"good {good}, incomplete 0, bad {len(expected)}, failed 0" in out


def test_replay_finds_a_changed_gate_in_its_drives_alone(cluster: Cluster, root: Path) -> None:
    status, out, errors = finished(cluster.batch("replay", f"--store={root}"))
    assert (status, out) == (0, "9 sessions: good 9, incomplete 0, bad 0, failed 0\n"), errors
    cluster.plant(gate=True)
    status, out, errors = finished(cluster.batch("replay", f"--store={root}"))
    assert status == 1, errors
    check_planted(root, out)
    assert "Traceback" not in errors


def test_damage_costs_its_own_session_alone(cluster: Cluster, root: Path) -> None:
    names = sessions_of(root)
    (path,) = (root / names[1]).glob("*.mcap")
    path.write_bytes(b"no recording" * 100)
    (path,) = (root / names[4]).glob("*.mcap")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    next((root / names[6]).glob("*.mcap")).unlink()
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    status, out, _ = finished(cluster.batch("replay", f"--store={root}"))
    assert status == 1
    results = {names[1]: "bad", names[4]: "incomplete", names[6]: "failed"}
    assert result_of(out, names) == results, out
    assert "good 6" in out and "is damaged" not in out
    status, out, _ = finished(cluster.batch("verify", f"--store={root}"))
    assert status == 1 and result_of(out, names) == dict.fromkeys(results, "bad"), out
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_hung_large_and_crashed_sessions_fail_alone(cluster: Cluster, root: Path) -> None:
    names = sessions_of(root)
    short = [name.rpartition("/")[2] for name in names]
    cluster.plant(hang=short[0], large=short[3], crash=short[5])
    argv = ("replay", f"--store={root}", "--limit=3", "--memory=256")
    status, out, errors = finished(cluster.batch(*argv))
    assert status == 1, errors
    failed = dict.fromkeys((names[0], names[3], names[5]), "failed")
    assert result_of(out, names) == failed and "good 6" in out
    for text in ("ended after 3 s: --limit S", "more than 256 MB: --memory MB", "ended with -9"):
        assert text in out


def test_export_and_query_of_all_sessions(cluster: Cluster, root: Path, tmp_path: Path) -> None:
    names, out = sessions_of(root), tmp_path / "out"
    export = ("export", "--csv", f"--store={root}", out)
    for _ in range(2):  # the second run keeps the results of the first
        status, said, errors = finished(cluster.batch(*export))
        assert (status, said) == (0, "9 sessions: good 9, incomplete 0, bad 0, failed 0\n"), errors
    assert fpvcar(["export", "--csv", str(tmp_path / "one"), str(root / names[2])]) == 0
    tables = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert {path.name: path.read_bytes() for path in (out / names[2]).iterdir()} == tables
    assert not [path for path in out.rglob(".*")]
    argv = ("query", "--csv", "SELECT count(*) AS rows FROM samples", f"--store={root}")
    status, said, errors = finished(cluster.batch(*argv))
    expected = [
        [session, str(len(list(sample_rows(sorted((root / session).glob("*.mcap"))))))]
        for session in names
    ]
    assert list(csv.reader(said.splitlines())) == [["session", "rows"], *expected], errors
    refused = ("query", "DROP VIEW samples", f"--store={root}")
    status, said, errors = finished(cluster.batch(*refused))
    assert status == 1 and not said and "refused: queries only read" in errors


def test_documented_commands_work(cluster: Cluster, root: Path, tmp_path: Path) -> None:
    lines = [line.strip() for line in DOCUMENT.read_text().splitlines()]
    batch = [line for line in lines if line.startswith("fpvstation batch ")]
    assert len(batch) == 5 and any("--cluster" in line for line in batch)
    for line in batch:
        words = [word for word in shlex.split(line, comments=True)[2:] if "tcp:" not in word]
        words = [word.replace("~", str(tmp_path)) for word in words if word != "--cluster"]
        status, out, errors = finished(cluster.batch(*words, f"--store={root}"))
        assert status == 0 and "good 9" in out + errors, (line, out, errors)
    assert list((tmp_path / "tables").glob("*/*/*/step.parquet"))


def test_absent_cluster_is_an_error_with_the_next_step(cluster: Cluster, root: Path) -> None:
    environment = cluster.environment
    for address in ("tcp://127.0.0.1:9", "nonsense"):
        for argv in (["batch", "verify", f"--store={root}", "--cluster"], ["worker"]):
            done = subprocess.run(
                [sys.executable, "-P", "-m", "fpvstation", *argv, address],
                env=environment,
                capture_output=True,
                text=True,
                timeout=60.0,
            )
            assert done.returncode == 1 and not done.stdout
            assert f"no Dask scheduler at {address}: " in done.stderr, done.stderr
            assert "start one with `dask scheduler`" in done.stderr
            assert len(done.stderr.splitlines()) == 1


def test_missing_library_is_named_with_its_extra(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "dask", None)
    assert fpvstation(["batch", "verify", f"--store={recorded}"]) == 1
    assert "pip install 'fpvcar[batch]'" in capsys.readouterr().err


@pytest.mark.parametrize("end", ["interrupted", pytest.param("killed", marks=pytest.mark.long)])
def test_ended_client_leaves_no_process(cluster: Cluster, root: Path, end: str) -> None:
    cluster.plant(hang="Plague")
    process = cluster.batch("replay", f"--store={root}", here=2)
    wait_for(lambda: len(children_of(process.pid)) == 2, "no session began", 60.0, 0.1)
    if end == "killed":
        process.kill()
        assert finished(process, 30.0)[0] == -signal.SIGKILL
    else:
        os.killpg(process.pid, signal.SIGINT)
        status, _, errors = finished(process, 30.0)
        assert status == 130 and "Traceback" not in errors, errors
    wait_for(lambda: not members(process.pid), "processes remain", 20.0)


def test_killed_worker_costs_no_session(cluster: Cluster, root: Path) -> None:
    cluster.plant(gate=True, slow_s=1.0)
    process = cluster.batch("replay", f"--store={root}")
    wait_for(lambda: cluster.busy(2), "no session began", 30.0)
    cluster.kill(2)
    status, out, errors = finished(process)
    assert status == 1, errors
    check_planted(root, out)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_query_batch_of_many_drives_survives_killed_workers(tmp_path: Path) -> None:
    """Replay 200 drives; kill a worker every 10 s, and stop one as a frozen machine does."""
    root, cluster = tmp_path / "store", Cluster(tmp_path / "home")
    fill(root, DRIVES)
    ended, kills = threading.Event(), 0

    def kill() -> None:
        nonlocal kills
        while not ended.wait(KILL_EVERY_S):
            cluster.kill(1 + kills)
            cluster.add_workers(1)
            kills += 1

    killing = threading.Thread(target=kill)
    try:
        cluster.add_workers(3)
        cluster.plant(gate=True, slow_s=0.5)
        process = cluster.batch("replay", f"--store={root}")
        wait_for(lambda: cluster.busy(0), "no session began", 30.0)
        for pid in members(cluster.workers[0].pid):
            os.kill(pid, signal.SIGSTOP)
        killing.start()
        status, out, errors = finished(process, 600.0)
        ended.set()
        killing.join()
    finally:
        ended.set()
        cluster.end()
    print(f"{DRIVES} drives, {kills} workers killed, 1 frozen")
    assert status == 1 and kills >= 3, errors
    check_planted(root, out)
