"""Records of archived sessions: damage is found, and loses neither a row nor a car's receipt."""

from random import Random

import pytest
from testkit.base_station.builder import Station
from testkit.base_station.disk import FakeDisk, sums_of
from testkit.base_station.stored import NAME, SESSION, opened

from fpvcar.library.drives import DriveFilter
from fpvstation.fetch.pull import Round
from fpvstation.store.archived import ArchivedSession, ArchiveLog, path_of
from fpvstation.store.replica_log import DAY_S
from tests.unit.fpvstation.fetch.test_pull import NAMES, PlayedCar, pull_of

NOW_S = 1.8e9
pytestmark = pytest.mark.usefixtures("archived")


# --- Damaged records


@pytest.mark.parametrize("away", [False, True])
def test_verify_names_a_damaged_record(rig: Station, away: bool) -> None:
    record = rig.root / path_of(SESSION)
    record.write_bytes(record.read_bytes()[:-9])
    if away:  # as of a bucket: no link leads to the files
        (rig.root / SESSION).unlink()
    found = rig.faults()
    assert found[0][:3] == (path_of(SESSION), 0, "cannot be decoded")
    assert "fpvstation restore SESSION" in found[0].done
    assert len(found) == (3 if away else 1), "segments that are away are named, too"


@pytest.mark.parametrize("away", [False, True])
def test_verify_names_a_record_with_a_flipped_checksum(rig: Station, away: bool) -> None:
    record = rig.root / path_of(SESSION)
    session = rig.store.archived(SESSION)
    assert session is not None
    sha256 = session.segments[NAME]
    flipped = ("0" if sha256[0] != "0" else "1") + sha256[1:]
    record.write_bytes(record.read_bytes().replace(sha256.encode(), flipped.encode()))
    if away:
        rig.unmount()
    found = rig.faults()
    assert found[0].path == path_of(SESSION)
    assert found[0].fault == f"it has {flipped[:16]}... for {NAME}, unlike .copies"
    assert rig.right_copies(NAME) or away, "the copy stays"


def test_session_of_a_damaged_record_stays_in_the_list(rig: Station) -> None:
    with rig.catalogue() as catalogue:
        assert catalogue.usage().archived == 1
        (rig.root / SESSION).unlink()
        (rig.root / path_of(SESSION)).write_bytes(b"{")
        catalogue.sync()
        fault = f"{path_of(SESSION)}: damaged here since"
        assert str(catalogue.faults[SESSION]).startswith(fault)
        assert catalogue.usage().archived == 1
        found = catalogue.find(DriveFilter(), float("inf"), 9)
    assert set(map(len, found.copies.values())) <= {0}, "no place is claimed"


# --- Segments that a car still has


async def pulled(car: PlayedCar, count: int, verified_s: float) -> Round:
    """Run a round with a car whose first segments are archived."""
    disk, names = FakeDisk(Random(1)), NAMES[:count]
    store = opened(disk, utc_s=lambda: NOW_S)
    segments = {name: sums_of(name.encode()).sha256 for name in names}
    sizes = {name: len(name) for name in names}
    with disk.changing():
        record = ArchivedSession("s3://drives/archive", verified_s, segments, sizes)
        ArchiveLog(disk).write(SESSION, record)
    return await pull_of(car, store).once(False)


async def test_late_segments_are_kept_by_the_car_and_are_no_fault_of_it() -> None:
    done = await pulled(PlayedCar({}), 1, NOW_S)
    assert list(done.late) == NAMES[1:] and not done.bad and not done.stored
    assert str(done.late[NAMES[1]]) == (
        f"{SESSION} is in s3://drives/archive: bring it back with `fpvstation recall "
        "Plague-20261121T193100Z`"
    )
    assert done.waiting == done.waiting_bytes == 0


async def test_archived_segment_gets_its_receipt_without_a_transfer() -> None:
    car = PlayedCar({})
    done = await pulled(car, 2, NOW_S - DAY_S)
    assert car.receipts == NAMES[:2] and done.receipts == 2 and not done.bytes


async def test_archived_segment_that_was_not_verified_for_long_gets_no_receipt() -> None:
    car = PlayedCar({})
    done = await pulled(car, 2, NOW_S - 31 * DAY_S)
    assert not car.receipts and list(done.late) == NAMES
