"""Automatic clean-up: old trash, old litter, and sessions over a bound."""

import asyncio
import datetime
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.base_station.stored import CAR, DATA, NAME, put, sums_of

from fpvcar.runtime.texts import VERBATIM, Text
from fpvstation.catalogue.catalogue import Catalogue
from fpvstation.housekeeping import (
    EVERY_S,
    Chore,
    Chores,
    chores_of,
    expire_trash,
    expire_unfinished,
    sync_pause_s,
)
from fpvstation.store.bound import Bound
from fpvstation.store.disk import Folder
from fpvstation.store.identity import StoreGone
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store

NOW = datetime.datetime(2026, 12, 23, 12, tzinfo=datetime.UTC)


def test_trash_goes_after_thirty_days(store: Store, tmp_path: Path) -> None:
    for day in ("2026-11-22", "2026-11-23", "2026-12-23", "my-own-way"):
        (tmp_path / ".trash" / day / "Plague").mkdir(parents=True)
        (tmp_path / ".trash" / day / "Plague" / NAME).write_bytes(DATA)
    list(expire_trash(store, tmp_path, NOW))
    left = sorted(one.name for one in (tmp_path / ".trash").iterdir())
    assert left == ["2026-11-23", "2026-12-23", "my-own-way"]


def test_trash_of_a_clock_in_1970_has_its_thirty_days_too(store: Store, tmp_path: Path) -> None:
    trash = tmp_path / ".trash"
    (trash / "1970-01-01" / CAR).mkdir(parents=True)
    (trash / "1970-01-01" / CAR / NAME).write_bytes(DATA)
    then = datetime.datetime(1970, 3, 1, tzinfo=datetime.UTC)
    assert not list(expire_trash(store, tmp_path, then))
    (trash / "2026-12-23").mkdir()
    (trash / "2026-12-23" / "other").touch()
    list(expire_trash(store, tmp_path, NOW))
    assert (trash / "1970-01-01" / CAR / NAME).exists(), "today has a folder already"
    for days, there in ((1, True), (31, True), (32, False)):
        list(expire_trash(store, tmp_path, NOW + datetime.timedelta(days)))
        assert (trash / "2026-12-24" / CAR / NAME).exists() == there


def test_unfinished_segment_goes_after_thirty_days(store: Store, tmp_path: Path) -> None:
    store.write(CAR, NAME, sums_of(DATA), 0, DATA[:99])
    (part,) = (tmp_path / ".incoming" / CAR).iterdir()
    os.utime(part, (0.0, NOW.timestamp() - 29 * 86400.0))
    assert not list(expire_unfinished(store, tmp_path, NOW))
    assert part.exists()
    assert not list(expire_unfinished(store, tmp_path, NOW + datetime.timedelta(days=2)))
    assert not part.exists()


def test_clean_up_on_an_unmounted_disk_deletes_nothing(store: Store, tmp_path: Path) -> None:
    (tmp_path / ".trash" / "2020-01-01").mkdir(parents=True)
    (tmp_path / ".fpvstation.json").unlink()
    with pytest.raises(StoreGone):
        list(expire_trash(store, tmp_path, NOW))
    with pytest.raises(StoreGone):
        list(expire_unfinished(store, tmp_path, NOW))
    with pytest.raises(StoreGone):
        list(bound(store, tmp_path, 1).run())
    assert (tmp_path / ".trash" / "2020-01-01").exists()


def bound(store: Store, root: Path, most: int) -> Bound:
    return Bound(store, Folder(root), ReplicaLog(Folder(root)), most)


class Enough(BaseException):
    """End of a test of endless chores."""


@pytest.mark.parametrize(
    "error, words",
    [
        (OSError(5, "Input/output error"), "Input/output error"),
        (StoreGone("mount its disk"), "mount its disk"),
        (sqlite3.OperationalError("database is locked"), "database is locked"),
        (ZeroDivisionError("oh"), "internal fault: ZeroDivisionError('oh')"),
    ],
)
async def test_chore_that_fails_is_run_again_beside_the_others(
    error: Exception, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    runs = list[str]()

    def bad() -> Iterator[Text]:
        runs.append("bad")
        raise error

    def good() -> Iterator[Text]:
        runs.append("good")
        yield from ()

    async def sleep(seconds: float) -> None:
        assert seconds == EVERY_S
        if min(runs.count("bad"), runs.count("good")) > 1:
            raise Enough

    chores = Chores([Chore(VERBATIM(text="bad"), bad), Chore(VERBATIM(text="good"), good)], sleep)
    with pytest.raises(Enough):
        await asyncio.wait_for(chores.run(), 20.0)
    states = {str(state.name): state for state in chores.states}
    assert words in str(states["bad"].fault) and states["bad"].fault_s
    assert not states["good"].fault and not states["good"].fault_s
    assert caplog.text.count(f"bad: {states['bad'].fault}") == 1, "logged once"


def test_chore_without_faults_forgets_the_last_fault() -> None:
    faults = iter([[VERBATIM(text="a"), VERBATIM(text="b")], []])
    chore = Chore(VERBATIM(text="one"), lambda: iter(next(faults)))
    chore.once()
    assert str(chore.state.fault) == "a; b"
    chore.once()
    assert chore.state.fault is None and chore.state.fault_s


def test_undeletable_trash_is_reported_and_the_bound_still_runs(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in ("2025-01-01", "2025-01-02"):
        (tmp_path / ".trash" / day / CAR).mkdir(parents=True)
    (tmp_path / ".trash" / "2025-01-03").touch()
    rmdir = os.rmdir

    def refuse(path: str | Path, *, dir_fd: int | None = None) -> None:
        if str(path).endswith("2025-01-01"):
            raise PermissionError(1, "Operation not permitted", str(path))
        rmdir(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", refuse)
    days = [NAME.replace("20261121", f"202611{day}") for day in (21, 22)]
    for name in days:
        put(store, name)
    catalogue = Catalogue(tmp_path / ".c.sqlite", tmp_path, store, store.id)
    catalogue.open()
    for chore in chores_of(store, tmp_path, bound(store, tmp_path, len(DATA)), catalogue):
        chore.once()
        refused = "Operation not permitted" in str(chore.state.fault)
        assert refused == (str(chore.name) == "trash"), chore.state
    catalogue.close()
    left = sorted(one.name for one in (tmp_path / ".trash").iterdir())
    assert left == ["2025-01-01", "2025-01-03"]
    assert len(list(store.sessions())) == 1, "the bound is kept"


def test_temporary_files_of_a_kill_expire_wherever_they_are(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store)
    session = next(store.sessions())
    litter, own = f".{'0f' * 8}.new", ".mine.new"
    for folder in ("", session, ".copies", ".incoming/car"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for name in (litter, own):
            (tmp_path / folder / name).touch()
            os.utime(tmp_path / folder / name, (0.0, NOW.timestamp() - 86_000.0))
    assert not list(expire_unfinished(store, tmp_path, NOW))
    assert len(list(tmp_path.rglob(litter))) == 4
    later = NOW + datetime.timedelta(days=1)
    assert not list(expire_unfinished(store, tmp_path, later))
    assert not list(tmp_path.rglob(litter)) and len(list(tmp_path.rglob(own))) == 4
    assert len(list(store.segments())) == 1 and not store.verify_segment(*store.segments())


def test_unfinished_files_that_cannot_go_are_reported(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f".{digit * 16}.new" for digit in "0123"]
    for name in names:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0.0, 0.0))
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.name == names[1]:
            raise PermissionError(1, "Operation not permitted", str(path))
        unlink(path)
        if path.name == names[2]:
            raise FileNotFoundError(2, "already gone", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    (fault,) = expire_unfinished(store, tmp_path, NOW)
    assert "Operation not permitted" in str(fault) and names[1] in str(fault)
    assert [one.name for one in tmp_path.glob(".*.new")] == [names[1]]


def test_sync_pause_is_fifty_times_its_duration_within_bounds() -> None:
    assert [sync_pause_s(took_s) for took_s in (0.0, 0.1, 9.0)] == [2.0, 5.0, 20.0]
