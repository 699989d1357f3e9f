"""Restore of a session from the trash or an office; good files are never overwritten."""

from pathlib import Path

import pytest
from testkit.base_station.office import PLACE, SECOND, PlayedOffice, Rig, act
from testkit.base_station.stored import DATA, NAME, SESSION, put

from fpvstation.errors import StationError
from fpvstation.replicas.remote import CopyProgress, PlaceFault
from fpvstation.replicas.restore import Restore, RestoreResult, session_of
from fpvstation.store.disk import Folder
from fpvstation.store.replica_log import ReplicaLog

TRASH = ".trash/2026-11-23"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    made = Rig(tmp_path)
    put(made.store)
    put(made.store, SECOND, b"second")
    return made


class Told(list[tuple[str, CopyProgress]]):
    def tell(self, what: str, now: CopyProgress) -> None:
        self.append((what, now))


async def restored(rig: Rig, *offices: PlayedOffice, told: Told | None = None) -> RestoreResult:
    tell = (told if told is not None else Told()).tell
    work = Restore(SESSION, rig.store, Folder(rig.root), rig.copies, act, tell)
    return await work.run(offices)


def names_here(rig: Rig) -> set[str]:
    return {one.path.rpartition("/")[2] for one in rig.store.listed(SESSION)}


async def test_good_files_stay_and_are_counted(rig: Rig) -> None:
    before = (rig.root / SESSION / NAME).stat().st_ino
    told = Told()
    done = await restored(rig, rig.office, told=told)
    assert (done.present, done.restored, done.missing) == (2, {}, [])
    assert (rig.root / SESSION / NAME).stat().st_ino == before
    whole = len(DATA) + len(b"second")
    assert told[-1] == ("segments here", CopyProgress(whole, whole, whole))


async def test_removed_session_comes_back_from_the_trash(rig: Rig) -> None:
    rig.store.remove(SESSION, TRASH)
    done = await restored(rig)
    assert (done.restored, done.missing) == ({"the trash": 2}, [])
    assert names_here(rig) == {NAME, SECOND} and rig.store.removed() == set()
    assert not (rig.root / ".trash").exists(), "no empty folders"


async def test_file_damaged_in_the_trash_comes_from_the_office(rig: Rig) -> None:
    await rig.later()
    rig.store.remove(SESSION, TRASH)
    (rig.root / TRASH / SESSION / NAME).write_bytes(b"bent")
    done = await restored(rig, rig.office)
    assert done.restored == {"the trash": 1, PLACE: 1} and not done.missing
    assert (rig.root / SESSION / NAME).read_bytes() == DATA
    assert (rig.root / TRASH / SESSION / NAME).read_bytes() == b"bent", "not deleted"


async def test_damaged_local_file_is_found_and_replaced(rig: Rig) -> None:
    await rig.later()
    rig.bend()
    done = await restored(rig, rig.office)
    assert (done.present, done.restored, done.missing) == (1, {PLACE: 1}, [])
    assert (rig.root / SESSION / NAME).read_bytes() == DATA
    assert not (rig.root / "came").exists()


async def test_missing_file_and_office_fault_are_reported(rig: Rig) -> None:
    rig.bend()
    rig.office.faults = [PlaceFault("away")]
    done = await restored(rig, rig.office)
    assert (done.present, done.missing, done.faults) == (1, [NAME], ["away"])


async def test_file_bad_at_an_office_comes_from_the_next_one(rig: Rig) -> None:
    await rig.later()
    rig.bend()
    first = PlayedOffice(rig.root)
    first.there = {f"{SESSION}/{NAME}": b"bent, too"}
    done = await restored(rig, first, rig.office)
    assert done.restored == {PLACE: 1} and done.missing == []


def test_session_is_found_by_name_in_store_or_trash(rig: Rig) -> None:
    name, disk = SESSION.rpartition("/")[2], Folder(rig.root)

    def found(word: str) -> str:
        return session_of(word, rig.store, disk, rig.copies)

    assert found(name) == found(SESSION) == SESSION
    put(rig.store, NAME, DATA, "Arrow")
    with pytest.raises(StationError, match="names 2 sessions: Arrow"):
        found(name)
    rig.store.remove(SESSION, TRASH)
    assert found(SESSION) == SESSION


@pytest.mark.parametrize("word", ["", "x", "../../etc", f"../{SESSION}", "a/b/c"])
def test_malformed_session_name_is_refused(rig: Rig, word: str) -> None:
    with pytest.raises(StationError, match="names 0 sessions: none here; name it as CAR/DAY"):
        session_of(word, rig.store, Folder(rig.root), ReplicaLog(Folder(rig.root)))


def test_unknown_session_gets_the_path_of_its_name(rig: Rig) -> None:
    disk = Folder(rig.root)
    for word in ("Arrow-20261122T100000Z", "Arrow/2026-11-22/Arrow-20261122T100000Z"):
        found = session_of(word, rig.store, disk, rig.copies)
        assert found == "Arrow/2026-11-22/Arrow-20261122T100000Z"
