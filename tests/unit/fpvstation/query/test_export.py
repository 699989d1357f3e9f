"""`fpvstation export`: sessions that a query names become one dataset."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from testkit.base_station.stored import new_store, put
from testkit.recorder import datasets

from fpvcar.recordings import names
from fpvcar.recordings.repair.damage import INCOMPLETE
from fpvstation.__main__ import main
from fpvstation.catalogue.catalogue import FILE, Catalogue

Printed = pytest.CaptureFixture[str]
ALL = "SELECT session FROM sessions ORDER BY session"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a store with three drives, and its catalogue."""
    (tmp_path / "card").mkdir()
    root, state = tmp_path / "store", tmp_path / "state"
    store = new_store(root)
    for number in range(3):
        path = datasets.drive(tmp_path / "card", number, 2.0)
        parsed = names.parse(path.name)
        assert parsed is not None
        put(store, path.name, path.read_bytes(), parsed.car)
    state.mkdir()
    catalogue = Catalogue(state / FILE, root, store, store.id)
    catalogue.open()
    catalogue.sync()
    catalogue.close()
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    return root


def test_sessions_of_a_query_become_one_dataset(
    root: Path, tmp_path: Path, capsys: Printed
) -> None:
    out = tmp_path / "set"
    words = ["--store", str(root), ALL, "--lerobot", str(out), "--copy"]
    assert main(["export", *words]) == 0
    assert f"{out}: 3 episodes, 180 frames at 30 fps" in capsys.readouterr().out
    assert (out / "meta" / "info.json").exists()
    one = "SELECT session FROM sessions LIMIT 1"
    assert main(["export", "--store", str(root), one, "--donkey", str(tmp_path / "tub")]) == 0
    assert ": 1 episode, 60 frames" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT car FROM sessions", "no column `session` in the query, but car"),
        ("SELECT session FROM sessions WHERE car = 'x'", "no session in the result"),
        ("DROP TABLE sessions", "refused: queries only read"),
        ("SELECT 'a/b/c' AS session", "none of these sessions is in this store"),
    ],
)
def test_query_without_sessions_is_refused(
    root: Path, tmp_path: Path, capsys: Printed, sql: str, reason: str
) -> None:
    assert main(["export", "--store", str(root), sql, "--donkey", str(tmp_path / "tub")]) == 1
    assert reason in capsys.readouterr().err
    assert not list(tmp_path.glob("tub*"))


def test_session_that_is_not_in_the_store_is_named(
    root: Path, tmp_path: Path, capsys: Printed
) -> None:
    sql = f"{ALL[:29]} UNION SELECT 'Plague/2025-11-20/gone'"
    words = ["export", "--store", str(root), sql, "--donkey"]
    assert main([*words, str(tmp_path / "tub")]) == INCOMPLETE
    printed = capsys.readouterr()
    assert "Plague/2025-11-20/gone is not in this store, and left out" in printed.err
    assert "3 episodes" in printed.out
    assert main([*words, str(tmp_path / "again"), "--partial"]) == 0


@pytest.mark.slow
def test_interrupted_export_ends_and_is_continued(root: Path, tmp_path: Path) -> None:
    out, part = tmp_path / "set", tmp_path / "set.part"
    words = ["export", "--store", str(root), ALL, "--lerobot", str(out)]
    with subprocess.Popen([sys.executable, "-m", "fpvstation", *words]) as process:
        while not (part / "episodes" / "0.json").exists():
            assert process.poll() is None
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        status = process.wait(30)
    if status:  # else the export was quicker
        assert status == 130 and not out.exists()
        assert main(words) == 0
    assert out.exists() and not part.exists()
    shutil.rmtree(out)
