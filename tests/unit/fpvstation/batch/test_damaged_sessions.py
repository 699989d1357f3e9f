"""Whole-store jobs over a session with a damaged segment: the readable part, and no "good"."""

from pathlib import Path

import pytest
from testkit.base_station.builder import Station
from testkit.base_station.queries import session_files
from testkit.base_station.stored import put

from fpvcar import __version__
from fpvstation.batch.session_job import Job
from fpvstation.batch.tasks import KINDS

pytest.importorskip("pyarrow")
SQL = "SELECT count(*) FROM samples"


@pytest.fixture
def session(rig: Station, tmp_path: Path) -> Path:
    """Store one session of several segments; return its folder."""
    for path in session_files(tmp_path, "Plague-20251121T200001Z", 1, 3.0):
        put(rig.store, path.name, path.read_bytes())
    return rig.root / next(rig.store.sessions())


def result(rig: Station, kind: str, scratch: Path) -> tuple[str, list[str], list[list[object]]]:
    """Do a job; return its result, lines and rows."""
    (session,) = rig.store.sessions()
    scratch.mkdir(exist_ok=True)
    job = Job(
        session,
        rig.store.listed(session),
        str(rig.root),
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


@pytest.mark.parametrize("kind", ["query", "export"])
@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_damaged_session_is_not_good(
    rig: Station, session: Path, tmp_path: Path, kind: str, damage: str
) -> None:
    good, _, rows = result(rig, kind, tmp_path / "whole")
    assert good == "good"
    path = sorted(session.glob("*.mcap"))[-1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data if damage == "flip" else data[: len(data) // 2])
    damaged, lines, fewer = result(rig, kind, tmp_path / "damaged")
    assert damaged == "incomplete" and f"{path.name}: bad or missing" in lines[-1]
    assert len(fewer) == len(rows), "the readable part is there"


def test_export_that_exists_does_not_hide_the_damage(
    rig: Station, session: Path, tmp_path: Path
) -> None:
    (tmp_path / "scratch" / "out" / session.relative_to(rig.root)).mkdir(parents=True)
    path = next(session.glob("*.mcap"))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    damaged, lines, _ = result(rig, "export", tmp_path / "scratch")
    assert damaged == "incomplete" and "exists already" in lines[0]
