"""Sessions move to a folder archive and back; each step is killed, and each place goes away."""

import asyncio
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testkit.base_station.builder import FILES, OTHER, OTHER_NAME, Station
from testkit.base_station.stored import CAR, NAME, SECOND, SESSION, put

from fpvcar.http.languages import translated
from fpvstation.errors import StationError
from fpvstation.replicas.remote import PlaceFault
from fpvstation.replicas.tiers import archive_of
from fpvstation.settings import TierSettings
from fpvstation.store.archived import ARCHIVED
from fpvstation.store.identity import MARKER
from fpvstation.store.replica_log import DAY_S, segments_of
from fpvstation.store.sums_file import SUMS_FILE
from fpvstation.store.verify import verify
from tests.unit.fpvstation.conftest import Run

pytestmark = pytest.mark.usefixtures("filled")
WRITES = {"os.rename", "os.link", "os.symlink", "os.remove", "os.mkdir", "os.rmdir"}
"""Audit events of calls that change a file system; so does `open` for writing."""


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Run work in a child process that is killed before its change number `step` of a file
    system; return False if it ended before."""
    child = os.fork()
    if not child:
        count = 0

        def kill(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal count
            writing = event == "open" and isinstance(arguments[2], int) and arguments[2] & 3
            if event in WRITES or writing:
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                count += 1

        sys.addaudithook(kill)
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def test_archived_session_is_a_relative_link_and_comes_back(rig: Station) -> None:
    assert rig.archive() == sum(map(len, FILES.values()))
    link = rig.root / SESSION
    assert os.readlink(link) == os.path.relpath(rig.there / SESSION, link.parent)
    rig.check_one_copy(rig.there)
    assert (link / NAME).stat().st_mtime == 1e9
    assert rig.recall() == []
    assert not link.is_symlink() and not list(rig.root.glob(f"{ARCHIVED}/[!.]*"))
    rig.check_one_copy(rig.root)
    assert (link / NAME).stat().st_mtime == 1e9


@pytest.mark.slow
@pytest.mark.parametrize("way", ["archive", "recall"])
def test_kill_at_any_step_loses_and_doubles_nothing(tmp_path: Path, way: str) -> None:
    step, killed = 0, True
    while killed:
        place = tmp_path / str(step)
        rig = Station(place)
        rig.fill()
        if way == "recall":
            rig.archive()
        killed = killed_at(step, rig.archive if way == "archive" else rig.recall)
        rig.check_listed()
        assert rig.faults() == [], step
        assert rig.resume() == []
        rig.check_listed()
        archived = rig.store.archived(SESSION) is not None
        if archived == (way == "recall"):
            rig.recall() if archived else rig.archive()
        rig.check_one_copy(rig.there if way == "archive" else rig.root)
        shutil.rmtree(place)
        step += 1
    assert step > 20, "each step was killed"


def test_archive_that_is_away_keeps_its_sessions(rig: Station) -> None:
    rig.archive()
    store = rig.store
    with rig.catalogue() as catalogue:
        paths = catalogue.paths([entry.name for entry in catalogue.page("", 9).entries])
        assert len(paths) == 2 and all(path.exists() for path in paths.values())
        rig.unmount()
        assert list(store.sessions()) == [SESSION] and store.is_away(SESSION)
        for segment in rig.listed:
            name = segment.path.rpartition("/")[2]
            assert store.evicted(CAR, name, segment.sha256), "no car brings it again"
            assert store.find(CAR, name, len(FILES[name])) == segment
        with pytest.raises(OSError, match="is in the archive .*: mount it, or bring the drive"):
            catalogue.paths(paths)
        assert list(verify(store, rig.disk, [SESSION], 1e5)) == []
        assert catalogue.sync() == 0 and catalogue.usage().archived == 1
        catalogue.reset(None)
        assert catalogue.sync() == 1 and catalogue.usage().archived == 1
        with pytest.raises(StationError, match="recall"):
            put(store, NAME.replace("0001", "0003"), b"late")
        with pytest.raises(PlaceFault, match="is missing there: mount its disk"):
            rig.recall()
        put(store, OTHER_NAME, b"other")
        with pytest.raises(PlaceFault, match="is missing there: mount its disk"):
            asyncio.run(rig.tiers().archive(OTHER))
        assert rig.resume() == []
        assert not rig.there.exists()
    rig.mount()
    assert not rig.store.is_away(SESSION)
    assert rig.recall() == []


def test_archived_bytes_are_counted_apart_from_those_of_the_store(rig: Station) -> None:
    put(rig.store, OTHER_NAME, b"other")

    def counts() -> tuple[int, ...]:
        with rig.catalogue() as catalogue:
            usage = catalogue.usage()
        here = usage.sessions, usage.segments, usage.bytes
        return *here, usage.archived, usage.archived_bytes

    size = sum(map(len, FILES.values()))
    assert counts() == (2, 3, size + 5, 0, 0)
    rig.archive()
    assert counts() == (1, 1, 5, 1, size)
    rig.recall()
    assert counts() == (2, 3, size + 5, 0, 0)


def test_bad_copy_in_the_archive_is_named_and_kept(rig: Station) -> None:
    rig.archive()
    (rig.there / SESSION / SECOND).write_bytes(b"sEcond")
    (fault,) = rig.faults()
    assert "fpvstation recall Plague-2026" in f"{fault.fault}; {fault.done}"
    assert rig.recall() == [SECOND]
    assert [segment.path for segment in rig.store.listed(SESSION)] == [f"{SESSION}/{NAME}"]
    assert [path.name for path in (rig.there / SESSION).glob("*.mcap")] == [SECOND]
    assert rig.recall() == [SECOND], "it is tried again"
    with pytest.raises(StationError, match="1 files of .* are still in .*fpvstation recall"):
        rig.archive()
    put(rig.store, SECOND, FILES[SECOND])
    assert (rig.there / SESSION / SECOND).read_bytes() == b"sEcond"
    assert rig.recall() == []
    rig.check_one_copy(rig.root)
    assert not (rig.there / SESSION).exists()


@pytest.mark.parametrize("inside", ["store/archive", "."])
def test_archive_and_store_in_one_another_are_refused(rig: Station, inside: str) -> None:
    with pytest.raises(StationError, match="are not two separate folders"):
        archive_of(str(rig.root.parent / inside), rig.root)


def test_session_that_is_a_foreign_link_is_refused(rig: Station, tmp_path: Path) -> None:
    (rig.root / SESSION).rename(tmp_path / "elsewhere")
    (rig.root / SESSION).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StationError, match="links to .*elsewhere, which is not its archive"):
        rig.archive()
    assert (tmp_path / "elsewhere" / NAME).exists() and not list(rig.there.iterdir())


def test_link_that_points_elsewhere_is_named_and_kept(rig: Station, tmp_path: Path) -> None:
    rig.archive()
    link = rig.root / SESSION
    link.unlink()
    link.symlink_to(tmp_path)
    (fault,) = rig.resume()
    assert f"links to {tmp_path}, which is not its archive" in str(fault)
    assert "Entferne diesen Link" in translated("de", fault)
    assert os.readlink(link) == str(tmp_path)


def test_archive_of_another_store_gets_no_data(rig: Station) -> None:
    (rig.there / MARKER).write_bytes(b"{}")
    with pytest.raises(PlaceFault, match="of another store"):
        rig.archive()
    (rig.there / MARKER).unlink()
    (rig.there / "photos").mkdir()
    with pytest.raises(PlaceFault, match="or name an empty folder"):
        rig.archive()
    rig.check_one_copy(rig.root)


def test_session_that_is_being_read_stays(rig: Station) -> None:
    with (rig.root / SESSION / NAME).open("rb"):
        with pytest.raises(StationError, match="in use: archive it later"):
            rig.archive()
        assert not (rig.root / SESSION).is_symlink()
    rig.archive()
    rig.check_one_copy(rig.there)


def test_damaged_segment_is_not_archived(rig: Station) -> None:
    (rig.root / SESSION / SECOND).write_bytes(b"sEcond")
    with pytest.raises(PlaceFault, match=f"{SECOND}: damaged here.*fpvstation verify {SESSION}"):
        rig.archive()
    assert not (rig.there / SESSION).exists() and not (rig.root / SESSION).is_symlink()
    assert not list(rig.there.glob(".incoming/Plague/*/*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_full_archive_leaves_the_session_here(rig: Station) -> None:
    argv = ["mount", "-t", "tmpfs", "-o", "size=200k", "none", str(rig.there)]
    subprocess.run(argv, check=True)
    try:
        with pytest.raises(PlaceFault) as refused:
            rig.archive()
        assert str(refused.value) == (
            f"{rig.there} is full: {SESSION} needs 0.3 MB, and 0.2 MB are free there: make room "
            "there"
        )
        rig.check_one_copy(rig.root)
        subprocess.run(["mount", "-o", "remount,size=4m", str(rig.there)], check=True)
        rig.archive()
        rig.check_one_copy(rig.there)
    finally:
        subprocess.run(["umount", "-l", str(rig.there)], check=True)


def test_due_sessions_are_old_at_all_offices_and_settled(
    rig: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(rig.root)._replace(total=100, used=50, free=50)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    age = TierSettings(archive="/x", after="90 days")

    def due(settings: TierSettings, now_s: float) -> list[str]:
        rig.utc_s = now_s
        return [item.session for item in rig.tiers("nas").due(settings)]

    now_s = rig.utc_s
    assert due(age, now_s + 1000 * DAY_S) == [], "the office does not have it"
    rig.copies.record(SESSION, "nas", segments_of(rig.listed), now_s)
    assert due(age, now_s + 1000 * DAY_S) == [SESSION]
    assert due(age, 1e9 + DAY_S) == []
    assert due(TierSettings(archive="/x", above="99 %"), now_s) == []
    assert due(TierSettings(archive="/x", above="1 %"), now_s) == [SESSION]
    (rig.root / SESSION / SUMS_FILE).touch()
    assert due(TierSettings(archive="/x", above="1 %"), now_s) == [], "it may still grow"


def test_documented_commands_archive_and_recall(rig: Station, tmp_path: Path, run: Run) -> None:
    config = tmp_path / "station.toml"
    config.write_text(f'[tiers]\narchive = "{rig.there}"\nafter = "1 days"\n')
    options = [f"--store={rig.root}", f"--config={config}"]
    for argv, words, folder in (
        ("archive --due --dry-run", "would be archived: age", rig.root),
        ("archive --due", f"archived in {rig.there}", rig.there),
        ("archive --due", "no session is due", rig.there),
        ("verify --office", f"{rig.there}: good: 2 segments; bad: 0", rig.there),
        (f"recall {SESSION.rpartition('/')[2]}", "recalled", rig.root),
        (f"archive {SESSION}", "archived in", rig.there),
    ):
        answer = run(*argv.split(), *options)
        assert answer.status == 0 and words in answer.out, answer
        rig.check_one_copy(folder)
    for verb in ("rm", "restore", "archive"):
        answer = run(verb, SESSION, *(options if verb != "rm" else options[:1]))
        assert answer.status == 1 and str(rig.there) in answer.err
    rig.check_one_copy(rig.there)
    answer = run("archive", *options)
    assert answer.status == 1 and "expected SESSION or --due" in answer.err


def test_damaged_record_loses_no_session(rig: Station) -> None:
    rig.archive()
    (record,) = rig.root.glob(f"{ARCHIVED}/*/*/*.json")
    text = record.read_bytes()
    record.write_bytes(text[:-9])
    assert rig.store.archived(SESSION) is None
    assert rig.store.listed(SESSION) == rig.listed, "read through its link"
    sha256 = hashlib.sha256((rig.root / SESSION / NAME).read_bytes()).hexdigest()
    assert sha256 == segments_of(rig.listed)[NAME]
