"""Whole-store jobs over a session with a damaged segment: the readable part, and no "good"."""

from pathlib import Path

import pytest
from testkit.base_station.queries import session_files
from testkit.base_station.stored import put

from fpvcar import __version__
from fpvstation.batch.session_job import Job
from fpvstation.batch.tasks import KINDS
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store

pytest.importorskip("pyarrow")
SQL = "SELECT count(*) FROM samples"


class Rig:
    """Store with one session of several segments."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "store"
        self.root.mkdir()
        self.store = Store(Folder(self.root))
        self.store.open("")
        for path in session_files(folder, "Plague-20251121T200001Z", 1, 3.0):
            put(self.store, path.name, path.read_bytes())
        (self.session,) = self.store.sessions()
        self.runs = 0

    def result(self, kind: str) -> tuple[str, list[str], list[list[object]]]:
        """Do a job; return its result, lines and rows."""
        self.runs += 1
        scratch = self.folder / f"scratch-{self.runs}"
        scratch.mkdir(exist_ok=True)
        job = Job(
            self.session,
            self.store.listed(self.session),
            str(self.root),
            0,
            __version__,
            kind,
            600.0,
            1024,
            sql=SQL,
            form="csv",
            out=str(scratch / "out"),
            scratch=str(scratch),
        )
        outcome = KINDS[kind](job)
        return outcome.result, outcome.lines, outcome.rows


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.mark.parametrize("kind", ["query", "export"])
@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_damaged_session_is_not_good(rig: Rig, kind: str, damage: str) -> None:
    result, lines, rows = rig.result(kind)
    assert result == "good"
    path = sorted((rig.root / rig.session).glob("*.mcap"))[-1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data if damage == "flip" else data[: len(data) // 2])
    damaged, lines, fewer = rig.result(kind)
    assert damaged == "incomplete" and f"{path.name}: bad or missing" in lines[-1]
    assert len(fewer) == len(rows), "the readable part is there"


def test_export_that_exists_does_not_hide_the_damage(rig: Rig) -> None:
    (rig.folder / "scratch-1" / "out" / rig.session).mkdir(parents=True)
    path = next((rig.root / rig.session).glob("*.mcap"))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    result, lines, _ = rig.result("export")
    assert result == "incomplete" and "exists already" in lines[0]
