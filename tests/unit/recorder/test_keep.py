"""The last minute: what rolls while recording is off, and what is kept of it."""

import errno

import pytest

from fpvcar.recorder.rotation import GRACE_NS, Tape
from fpvcar.units import SECOND_NS
from tests.rigs.recording import CATALOGUE, UTC_NS, FakeDisk, about, second
from tests.unit.recorder.test_segments import SETTINGS, counts, name, taped

DEAD = "Plague-20261120T120000Z-0007.mcap"


def at(seconds: float) -> int:
    return UTC_NS + round(seconds * SECOND_NS)


def test_what_is_kept_ends_before_the_next_key_frame() -> None:
    disk = FakeDisk()
    tape = taped(disk, 3)
    film = second(at(3))  # key, delta, delta
    tape.write(film[:2])
    assert tape.keep(at(3.1)) == 1 and tape.keep(at(3.2)) == 0
    assert disk.names == [name(1) + ".keep", name(1) + ".part"], "already"
    tape.write(film[2:])
    tape.write(second(at(4)))
    assert disk.names == [name(1), name(1) + ".keep", name(2) + ".part"]
    assert (counts(disk, name(1)), counts(disk, name(2) + ".part")) == (12, 3)
    tape.write(second(at(5)))
    assert name(2) + ".keep" not in disk.names


def test_without_key_frames_it_ends_all_the_same() -> None:
    disk = FakeDisk()
    tape = taped(disk, 2)
    tape.keep(at(2))
    for number in range(8):
        tape.write(second(at(2 + number / 2))[1:2])
    made = disk.recording(name(1))
    assert at(2) + GRACE_NS - SECOND_NS <= made.end_ns < at(2) + GRACE_NS


def test_what_rolls_is_safe_as_soon_as_it_is_kept() -> None:
    disk = FakeDisk()
    tape = taped(disk, 5, rolling=True)
    assert disk.names == [name(1) + ".roll"]
    assert tape.keep(at(5)) == 1
    assert disk.names == [name(1) + ".keep", name(1) + ".part"]
    other = Tape(disk, SETTINGS, CATALOGUE)  # the run died
    other.begin(about(0), True)
    other.write(second(at(9)))
    assert other.leftovers == [name(1) + ".part"]


def test_a_file_that_was_not_kept_goes_on_rolling() -> None:
    disk = FakeDisk()
    tape = taped(disk, 5, rolling=True)
    tape.keep(at(5))
    tape.write(second(at(5)))
    assert disk.names == [name(1), name(1) + ".keep", name(2) + ".roll"]
    tape.close()
    assert disk.names == [name(1), name(1) + ".keep"]


def test_a_fault_while_it_rolls_leaves_the_minute() -> None:
    disk = FakeDisk()
    tape = taped(disk, 40, rolling=True)
    tape.abandon()
    tape.write(second(at(40)))
    assert {name(n) + ".roll" for n in (1, 2, 3, 4)} == set(disk.names)
    assert tape.keep(at(41)) == 4
    assert tape.leftovers == [name(3) + ".part"], "it was never closed"
    assert {name(1), name(2), name(4) + ".part"} <= set(disk.names)


def test_what_rolled_when_a_run_died_may_be_kept_for_a_minute() -> None:
    for kept in (True, False):
        disk = FakeDisk()
        disk.files[DEAD + ".roll"] = bytearray(b"x")
        tape = taped(disk, 30)
        if kept:
            assert tape.keep(at(30)) > 1
            assert tape.leftovers == [DEAD + ".part"] and DEAD + ".keep" in disk.names
        for number in range(30, 75):
            tape.write(second(at(number)))
        assert (DEAD + ".part" in disk.names) is kept
        assert DEAD + ".roll" not in disk.names


def test_a_minute_that_is_not_kept_at_once_is_kept_at_the_next_push() -> None:
    disk = FakeDisk()
    tape = taped(disk, 20, rolling=True)
    disk.fault = OSError(errno.EIO, "Input/output error")
    with pytest.raises(OSError):
        tape.keep(at(20))
    disk.fault = None
    assert tape.keep(at(20)) == 2
    tape.close()
    assert disk.names == [name(1), name(1) + ".keep", name(2), name(2) + ".keep"]


STRANGE = (
    "notes.txt", "film.mcap", "film.mcap.part", "film.mcap.roll", "film.mcap.new",
    "Plague-20261120T120000Z-0003.recovered.mcap.new", DEAD + ".new",
)  # fmt: skip


def test_what_is_not_its_own_is_never_touched() -> None:
    disk = FakeDisk()
    for one in STRANGE:
        disk.files[one] = bytearray(b"x")
    tape = taped(disk, 90, rolling=True)
    assert tape.leftovers == []
    tape.keep(at(90))
    tape.close()
    assert set(STRANGE) < set(disk.names)
    assert all(disk.files[one] == b"x" for one in STRANGE)


def test_after_a_fault_nothing_is_left_to_seal_until_the_folder_is_ours() -> None:
    disk = FakeDisk()
    disk.files[DEAD + ".part"] = bytearray(b"x")
    tape = taped(disk, 1)
    assert tape.leftovers == [DEAD + ".part"]
    tape.abandon()
    assert tape.leftovers == []
    tape.write(second(at(1)))
    assert tape.leftovers == [DEAD + ".part", name(1) + ".part"]
    tape.abandon()
    names = disk.names
    tape.close()
    assert disk.names == names
