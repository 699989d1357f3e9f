"""Restore of a session from the trash or an office; good files are never overwritten."""

import pytest
from testkit.base_station.builder import Station
from testkit.base_station.office import PLACE, PlayedOffice
from testkit.base_station.stored import DATA, NAME, SECOND, SESSION, put

from fpvstation.errors import StationError
from fpvstation.replicas.remote import CopyProgress, PlaceFault
from fpvstation.replicas.restore import session_of
from fpvstation.store.replica_log import segments_of

TRASH = ".trash/2026-11-23"


@pytest.fixture(autouse=True)
def segments(rig: Station) -> None:
    put(rig.store)
    put(rig.store, SECOND, b"second")


async def test_good_files_stay_and_are_counted(rig: Station) -> None:
    before = (rig.root / SESSION / NAME).stat().st_ino
    told = list[tuple[str, CopyProgress]]()
    done = await rig.restore(rig.office, tell=lambda *now: told.append(now))
    assert (done.present, done.restored, done.missing) == (2, {}, [])
    assert (rig.root / SESSION / NAME).stat().st_ino == before
    whole = len(DATA) + len(b"second")
    assert told[-1] == ("segments here", CopyProgress(whole, whole, whole))


async def test_removed_session_comes_back_from_the_trash(rig: Station) -> None:
    rig.store.remove(SESSION, TRASH)
    done = await rig.restore()
    assert (done.restored, done.missing) == ({"the trash": 2}, [])
    assert segments_of(rig.store.listed(SESSION)).keys() == {NAME, SECOND}
    assert rig.store.removed() == set()
    assert not (rig.root / ".trash").exists(), "no empty folders"


async def test_file_damaged_in_the_trash_comes_from_the_office(rig: Station) -> None:
    await rig.later()
    rig.store.remove(SESSION, TRASH)
    (rig.root / TRASH / SESSION / NAME).write_bytes(b"bent")
    done = await rig.restore(rig.office)
    assert done.restored == {"the trash": 1, PLACE: 1} and not done.missing
    assert (rig.root / SESSION / NAME).read_bytes() == DATA
    assert (rig.root / TRASH / SESSION / NAME).read_bytes() == b"bent", "not deleted"


async def test_damaged_local_file_is_found_and_replaced(rig: Station) -> None:
    await rig.later()
    rig.bend()
    done = await rig.restore(rig.office)
    assert (done.present, done.restored, done.missing) == (1, {PLACE: 1}, [])
    assert (rig.root / SESSION / NAME).read_bytes() == DATA
    assert not (rig.root / "came").exists()


async def test_missing_file_and_office_fault_are_reported(rig: Station) -> None:
    rig.bend()
    rig.office.faults = [PlaceFault("away")]
    done = await rig.restore(rig.office)
    assert (done.present, done.missing, done.faults) == (1, [NAME], ["away"])


async def test_file_bad_at_an_office_comes_from_the_next_one(rig: Station) -> None:
    await rig.later()
    rig.bend()
    first = PlayedOffice(rig.root)
    first.there = {f"{SESSION}/{NAME}": b"bent, too"}
    done = await rig.restore(first, rig.office)
    assert done.restored == {PLACE: 1} and done.missing == []


def test_session_is_found_by_name_in_store_or_trash(rig: Station) -> None:
    name = SESSION.rpartition("/")[2]

    def found(word: str) -> str:
        return session_of(word, rig.store, rig.disk, rig.copies)

    assert found(name) == found(SESSION) == SESSION
    put(rig.store, NAME, DATA, "Arrow")
    with pytest.raises(StationError, match="names 2 sessions: Arrow"):
        found(name)
    rig.store.remove(SESSION, TRASH)
    assert found(SESSION) == SESSION


@pytest.mark.parametrize("word", ["", "x", "../../etc", f"../{SESSION}", "a/b/c"])
def test_malformed_session_name_is_refused(rig: Station, word: str) -> None:
    with pytest.raises(StationError, match="names 0 sessions: none here; name it as CAR/DAY"):
        session_of(word, rig.store, rig.disk, rig.copies)


def test_unknown_session_gets_the_path_of_its_name(rig: Station) -> None:
    for word in ("Arrow-20261122T100000Z", "Arrow/2026-11-22/Arrow-20261122T100000Z"):
        found = session_of(word, rig.store, rig.disk, rig.copies)
        assert found == "Arrow/2026-11-22/Arrow-20261122T100000Z"
