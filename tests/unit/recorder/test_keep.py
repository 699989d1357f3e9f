"""Last minute: the ring while recording is off, and the files kept from it."""

import errno

import pytest
from testkit.recorder.recording import (
    CATALOGUE,
    SETTINGS,
    UTC_NS,
    FakeFolder,
    about,
    counts,
    go_on,
    name,
    recorded,
    second,
)

from fpvcar.recorder.rotation import GRACE_NS, Rotation
from fpvcar.runtime.units import SECOND_NS

DEAD = "Plague-20261120T120000Z-0007.mcap"


def at(seconds: float) -> int:
    return UTC_NS + round(seconds * SECOND_NS)


@pytest.fixture
def disk() -> FakeFolder:
    return FakeFolder()


def test_kept_file_ends_before_the_next_key_frame(disk: FakeFolder) -> None:
    rotation = recorded(disk, 3)
    film = second(at(3))  # key, delta, delta
    rotation.write(film[:2])
    assert rotation.keep(at(3.1)) == 1 and rotation.keep(at(3.2)) == 0
    assert disk.names == [name(1) + ".keep", name(1) + ".part"], "already"
    rotation.write(film[2:])
    rotation.write(second(at(4)))
    assert disk.names == [name(1), name(1) + ".keep", name(2) + ".part"]
    assert (counts(disk, name(1)), counts(disk, name(2) + ".part")) == (12, 3)
    rotation.write(second(at(5)))
    assert name(2) + ".keep" not in disk.names


def test_car_at_rest_ends_a_file_without_keeping_it(disk: FakeFolder) -> None:
    rotation = recorded(disk, 2)
    rotation.end_soon(at(1.9))
    rotation.end_soon(at(9))  # the first one counts
    rotation.write(second(at(2)))
    assert disk.names == [name(1), name(2) + ".part"]
    go_on(rotation, range(3, 6))
    assert disk.names == [name(1), name(2) + ".part"], "that was for the first one"
    assert rotation.keep(at(6)) == 2, "the one that rested is of the last minute"


def test_deleted_file_gets_no_keep_mark(disk: FakeFolder) -> None:
    """A grown-up deleted one of two files of the last minute."""
    rotation = recorded(disk, 3)
    for number in (3, 4):
        rotation.begin(about(number), False)
        rotation.write(second(at(number)))
    deleted, stays, opened = disk.names
    del disk.files[deleted]
    assert rotation.keep(at(5)) == 2
    assert deleted + ".keep" not in disk.names
    assert {stays, stays + ".keep"} <= set(disk.names)
    assert rotation.keep(at(5)) == 0 and opened in disk.names


def test_kept_file_without_key_frames_ends_after_the_grace(disk: FakeFolder) -> None:
    rotation = recorded(disk, 2)
    rotation.keep(at(2))
    for number in range(8):
        rotation.write(second(at(2 + number / 2))[1:2])
    made = disk.recording(name(1))
    assert at(2) + GRACE_NS - SECOND_NS <= made.end_ns < at(2) + GRACE_NS


def test_rolling_file_is_safe_as_soon_as_it_is_kept(disk: FakeFolder) -> None:
    rotation = recorded(disk, 5, rolling=True)
    assert disk.names == [name(1) + ".roll"]
    assert rotation.keep(at(5)) == 1
    assert disk.names == [name(1) + ".keep", name(1) + ".part"]
    other = Rotation(disk, SETTINGS, CATALOGUE)  # the run died
    other.begin(about(0), True)
    other.write(second(at(9)))
    assert other.leftovers == [name(1) + ".part"]


def test_file_after_a_kept_file_rolls_again(disk: FakeFolder) -> None:
    rotation = recorded(disk, 5, rolling=True)
    rotation.keep(at(5))
    rotation.write(second(at(5)))
    assert disk.names == [name(1), name(1) + ".keep", name(2) + ".roll"]
    rotation.close()
    assert disk.names == [name(1), name(1) + ".keep"]


def test_fault_while_rolling_leaves_the_last_minute(disk: FakeFolder) -> None:
    rotation = recorded(disk, 40, rolling=True)
    rotation.abandon()
    rotation.write(second(at(40)))
    assert {name(n) + ".roll" for n in (1, 2, 3, 4)} == set(disk.names)
    assert rotation.keep(at(41)) == 4
    assert rotation.leftovers == [name(3) + ".part"], "it was never closed"
    assert {name(1), name(2), name(4) + ".part"} <= set(disk.names)


def test_rolling_file_of_a_dead_run_is_keepable_for_a_minute() -> None:
    for kept in (True, False):
        disk = FakeFolder()
        disk.files[DEAD + ".roll"] = bytearray(b"x")
        rotation = recorded(disk, 30)
        if kept:
            assert rotation.keep(at(30)) > 1
            assert rotation.leftovers == [DEAD + ".part"] and DEAD + ".keep" in disk.names
        go_on(rotation, range(30, 75))
        assert (DEAD + ".part" in disk.names) is kept
        assert DEAD + ".roll" not in disk.names


def test_keep_that_failed_succeeds_at_the_next_push(disk: FakeFolder) -> None:
    rotation = recorded(disk, 20, rolling=True)
    disk.fault = OSError(errno.EIO, "Input/output error")
    with pytest.raises(OSError):
        rotation.keep(at(20))
    disk.fault = None
    assert rotation.keep(at(20)) == 2
    rotation.close()
    assert disk.names == [name(1), name(1) + ".keep", name(2), name(2) + ".keep"]


STRANGE = (
    "notes.txt",
    "film.mcap",
    "film.mcap.part",
    "film.mcap.roll",
    "film.mcap.new",
    "Plague-20261120T120000Z-0003.recovered.mcap.new",
    DEAD + ".new",
)


def test_foreign_files_are_never_touched(disk: FakeFolder) -> None:
    for one in STRANGE:
        disk.files[one] = bytearray(b"x")
    rotation = recorded(disk, 90, rolling=True)
    assert rotation.leftovers == []
    rotation.keep(at(90))
    rotation.close()
    assert set(STRANGE) < set(disk.names)
    assert all(disk.files[one] == b"x" for one in STRANGE)


def test_leftovers_are_empty_after_a_fault_until_the_next_write(disk: FakeFolder) -> None:
    disk.files[DEAD + ".part"] = bytearray(b"x")
    rotation = recorded(disk, 1)
    assert rotation.leftovers == [DEAD + ".part"]
    rotation.abandon()
    assert rotation.leftovers == []
    rotation.write(second(at(1)))
    assert rotation.leftovers == [DEAD + ".part", name(1) + ".part"]
    rotation.abandon()
    names = disk.names
    rotation.close()
    assert disk.names == names
