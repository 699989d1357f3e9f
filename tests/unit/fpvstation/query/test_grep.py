"""Text search over all recordings: `fpvstation grep`."""

import re

import pytest
from testkit.base_station.queries import OTHER, SESSION, QueryWorld, scan

from fpvcar.library.drives import DriveFilter
from fpvstation.__main__ import main
from fpvstation.catalogue.catalogue import FILE
from fpvstation.query import sidecar
from fpvstation.query.grep import grep
from fpvstation.query.sidecar import TEXTS

Captured = pytest.CaptureFixture[str]
LINE = re.compile(r"(\w+/[\d-]+/[\w-]+):(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z):(\w+):(.+)")


def lines_of(world: QueryWorld, capsys: Captured, pattern: str, *options: str) -> list[list[str]]:
    """Return session, time, kind and text of each printed line."""
    status = main(["grep", pattern, f"--store={world.root}", *options])
    said = capsys.readouterr().out.splitlines()
    assert status == (0 if said else 1)
    return [list(match.groups()) for line in said if (match := LINE.fullmatch(line))]


def test_marks_causes_and_log_lines_are_found(asked: QueryWorld, capsys: Captured) -> None:
    found = lines_of(asked, capsys, "LOOK here")
    assert [line[0] for line in found] == [OTHER, SESSION]
    ((_, mark),) = scan(asked.files()).topics["/mark"]
    assert found[1][2:] == ["mark", f"Ann: {mark.message}"]
    assert found[1][1].startswith("2025-11-21T20:00:06.0")
    assert {line[2] for line in lines_of(asked, capsys, "stopped by|hot|gone$")} == {"log", "fault"}
    stops = lines_of(asked, capsys, "^gate: estop")
    assert stops and {line[2] for line in stops} == {"stop"}
    assert lines_of(asked, capsys, "no such text") == []


def test_names_of_drivers_sessions_and_drives_are_found(
    asked: QueryWorld, capsys: Captured
) -> None:
    assert {line[3] for line in lines_of(asked, capsys, "bob takes")} == {
        "seat: Bob: Bob takes the wheel"
    }
    assert lines_of(asked, capsys, "arrow-2025") == [
        [OTHER, "2025-12-01T08:00:00.000000000Z", "session", OTHER.rpartition("/")[2]]
    ]
    drives = asked.catalogue.find(DriveFilter(), float("inf"), 10)
    drive = next(one for one in drives.copies if one.startswith("Plague"))
    asked.catalogue.name(drive, "Under the (old) sofa")
    for pattern in ("old", r"\(old\) sofa", "^under"):
        (line,) = lines_of(asked, capsys, pattern)
        assert line[0] == SESSION and line[2:] == ["title", "Under the (old) sofa"]


def test_newest_lines_come_last_and_are_kept(asked: QueryWorld, capsys: Captured) -> None:
    everything = lines_of(asked, capsys, "")
    assert [line[1] for line in everything] == sorted(line[1] for line in everything)
    last = lines_of(asked, capsys, "", "--most=3")
    assert [line[1] for line in last] == [line[1] for line in everything[-3:]]
    assert len(grep(asked.state, asked.store.id, "", 3)) == 3


def test_damage_is_an_error_and_not_silence(asked: QueryWorld, capsys: Captured) -> None:
    def said() -> str:
        assert main(["grep", "sofa", f"--store={asked.root}"]) == 1
        return capsys.readouterr().err

    assert said() == ""
    texts, listed = asked.keeper.folder / TEXTS, asked.state / FILE
    whole, size = texts.read_bytes(), texts.stat().st_size
    for damaged in (bytes(9000), whole[:4096] + bytes(size - 4096), whole[: size // 2]):
        texts.write_bytes(damaged)
        assert f"{texts} is damaged" in said() and texts.read_bytes() == damaged
    texts.write_bytes(whole)
    asked.catalogue.close()
    for damage in (lambda: listed.write_bytes(bytes(9000)), listed.unlink):
        for suffix in ("-wal", "-shm"):
            listed.with_name(listed.name + suffix).unlink(missing_ok=True)
        damage()
        assert said() == f"fpvstation: {listed} does not list this store: fpvstation rebuild\n"


def test_sessions_that_are_left_out_are_counted(asked: QueryWorld, capsys: Captured) -> None:
    sidecar.remove(asked.keeper.folder, asked.sidecars("samples")[0].stem)
    assert main(["grep", "look here", f"--store={asked.root}"]) == 0
    assert "1 session left out: a running station adds" in capsys.readouterr().err


def test_wrong_pattern_and_missing_sidecars_are_named(world: QueryWorld, capsys: Captured) -> None:
    assert main(["grep", "x", f"--store={world.root}"]) == 1
    assert "no sidecar of this store" in capsys.readouterr().err
    list(world.keeper.run())
    assert main(["grep", "a(b", f"--store={world.root}"]) == 1
    assert '"a(b" refused: missing ), unterminated subpattern' in capsys.readouterr().err
