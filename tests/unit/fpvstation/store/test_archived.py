"""Records of archived sessions: damage is found, and loses neither a row nor a car's receipt."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from testkit.base_station.disk import FakeDisk, sums_of
from testkit.base_station.stored import NAME, SESSION

from fpvcar.library.drives import DriveFilter
from fpvstation.catalogue.catalogue import Catalogue
from fpvstation.fetch.fair_slots import FairSemaphore
from fpvstation.fetch.pull import Pull
from fpvstation.store.archived import ArchivedSession, ArchiveLog, path_of
from fpvstation.store.disk import Folder
from fpvstation.store.replica_log import DAY_S
from fpvstation.store.store import Store
from fpvstation.store.verify import Verdict, verify
from tests.unit.fpvstation.fetch.test_pull import NAMES, PlayedCar, act
from tests.unit.fpvstation.replicas.test_tiers import Rig

NOW_S = 1.8e9


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = Rig(tmp_path)
    rig.archive()
    return rig


def faults(rig: Rig) -> list[Verdict]:
    found = verify(rig.store, Folder(rig.root), [SESSION], 1e5)
    return [verdict for verdict in found if verdict.fault]


# --- Damaged records


@pytest.mark.parametrize("away", [False, True])
def test_verify_names_a_damaged_record(rig: Rig, away: bool) -> None:
    record = rig.root / path_of(SESSION)
    record.write_bytes(record.read_bytes()[:-9])
    if away:  # as of a bucket: no link leads to the files
        (rig.root / SESSION).unlink()
    found = faults(rig)
    assert found[0][:3] == (path_of(SESSION), 0, "cannot be decoded")
    assert "fpvstation restore SESSION" in found[0].done
    assert len(found) == (3 if away else 1), "segments that are away are named, too"


@pytest.mark.parametrize("away", [False, True])
def test_verify_names_a_record_with_a_flipped_checksum(rig: Rig, away: bool) -> None:
    record = rig.root / path_of(SESSION)
    session = rig.store.archived(SESSION)
    assert session is not None
    sha256 = session.segments[NAME]
    flipped = ("0" if sha256[0] != "0" else "1") + sha256[1:]
    record.write_bytes(record.read_bytes().replace(sha256.encode(), flipped.encode()))
    if away:
        rig.unmount()
    found = faults(rig)
    assert found[0].path == path_of(SESSION)
    assert found[0].fault == f"it has {flipped[:16]}... for {NAME}, unlike .copies"
    assert rig.copies(NAME) or away, "the copy stays"


@pytest.fixture
def catalogue(rig: Rig, tmp_path: Path) -> Iterator[Catalogue]:
    made = Catalogue(tmp_path / "catalogue.sqlite", rig.root, rig.store, rig.store.id)
    made.open()
    made.sync()
    yield made
    made.close()


def test_session_of_a_damaged_record_stays_in_the_list(rig: Rig, catalogue: Catalogue) -> None:
    assert catalogue.usage().archived == 1
    (rig.root / SESSION).unlink()
    record = rig.root / path_of(SESSION)
    record.write_bytes(b"{")
    catalogue.sync()
    assert str(catalogue.faults[SESSION]).startswith(f"{path_of(SESSION)}: damaged here since")
    assert catalogue.usage().archived == 1
    found = catalogue.find(DriveFilter(), float("inf"), 9)
    assert set(map(len, found.copies.values())) <= {0}, "no place is claimed"


# --- Segments that a car still has


def archived(disk: FakeDisk, names: list[str], verified_s: float) -> None:
    """Write the record of a session with these segments of the played car."""
    segments = {name: sums_of(name.encode()).sha256 for name in names}
    sizes = {name: len(name) for name in names}
    with disk.changing():
        record = ArchivedSession("s3://drives/archive", verified_s, segments, sizes)
        ArchiveLog(disk).write(SESSION, record)


def pull_of(car: PlayedCar, disk: FakeDisk) -> Pull:
    store = Store(disk, utc_s=lambda: NOW_S)
    store.open("")
    return Pull(car, store, "Plague", act, FairSemaphore())


async def test_late_segments_are_kept_by_the_car_and_are_no_fault_of_it() -> None:
    disk, car = FakeDisk(Random(1)), PlayedCar({})
    pull = pull_of(car, disk)
    archived(disk, NAMES[:1], NOW_S)
    done = await pull.once(False)
    assert list(done.late) == NAMES[1:] and not done.bad and not done.stored
    assert str(done.late[NAMES[1]]) == (
        f"{SESSION} is in s3://drives/archive: bring it back with `fpvstation recall "
        "Plague-20261121T193100Z`"
    )
    assert done.waiting == done.waiting_bytes == 0


async def test_archived_segment_gets_its_receipt_without_a_transfer() -> None:
    disk, car = FakeDisk(Random(1)), PlayedCar({})
    pull = pull_of(car, disk)
    archived(disk, NAMES[:2], NOW_S - DAY_S)
    done = await pull.once(False)
    assert car.receipts == NAMES[:2] and done.receipts == 2 and not done.bytes


async def test_archived_segment_that_was_not_verified_for_long_gets_no_receipt() -> None:
    disk, car = FakeDisk(Random(1)), PlayedCar({})
    pull = pull_of(car, disk)
    archived(disk, NAMES[:2], NOW_S - 31 * DAY_S)
    done = await pull.once(False)
    assert not car.receipts and list(done.late) == NAMES
