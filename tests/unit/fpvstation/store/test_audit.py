"""Damaged lists: each is reported, no recording is moved, and a line is repaired only if its
file proves it."""

from random import Random

import pytest
from testkit.base_station.disk import FakeDisk, Inode, hash_of, sums_of
from testkit.base_station.stored import CAR, NAME, SESSION, opened, put

from fpvstation.store.audit import KEPT, OFF, UNLISTED, near
from fpvstation.store.replica_log import COPIES, HERE, ReplicaLog
from fpvstation.store.sums_file import SUMS_FILE, listing_of
from fpvstation.store.verify import Verdict, verify

LIST, RECORD = f"{SESSION}/{SUMS_FILE}", f"{COPIES}/{SESSION}.json"
NAMES = [NAME.replace("0001", f"000{number}") for number in (1, 2, 3)]
OFFICE = "nas:/drives"


class Rig:
    """Store in memory with three segments of one session."""

    def __init__(self) -> None:
        self.disk = FakeDisk(Random(1))
        self.store, self.copies = opened(self.disk), ReplicaLog(self.disk)
        self.data = {name: name.encode() for name in NAMES}
        for name, data in self.data.items():
            put(self.store, name, data)
        self.right = self.disk.read(LIST)

    def put(self, path: str, data: bytes) -> None:
        self.disk.names_now[path] = Inode(bytearray(data), data)

    def forget_records(self) -> None:
        """Remove the records, like a store of an older fpvstation."""
        self.disk.names_now.pop(RECORD)

    def verify(self) -> list[Verdict]:
        found = verify(self.store, self.disk, sorted(self.store.known()), 1e9)
        return [one for one in found if one.fault]

    def in_place(self) -> bool:
        """Return True if all recordings are in their places."""
        return all(self.disk.read(f"{SESSION}/{name}") == data for name, data in self.data.items())


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.mark.parametrize("records", [True, False])
def test_flipped_bit_of_a_list_is_named_and_repaired(records: bool) -> None:
    rig = Rig()
    for bit in range(8 * len(rig.right)):
        damaged = bytearray(rig.right)
        damaged[bit // 8] ^= 1 << bit % 8
        if not records:
            rig.disk.names_now.pop(RECORD, None)
        rig.put(LIST, bytes(damaged))
        found = rig.verify()
        assert found, f"bit {bit} is not named"
        assert rig.in_place(), f"bit {bit} moves a recording"
        assert rig.disk.read(LIST) == rig.right, f"bit {bit}: {found}"
        assert rig.verify() == []
        old = [path for path in rig.disk.names_now if path.startswith(f".bad/{LIST}")]
        assert [rig.disk.read(one) for one in old] == [damaged], "it is kept"
        rig.disk.remove(old[0])


@pytest.mark.parametrize("left", [b"", b"xyz", b"%"])
def test_deleted_or_cut_list_is_written_again_by_its_records(rig: Rig, left: bytes) -> None:
    rig.put(LIST, rig.right[:30] if left == b"%" else left)
    if not left:
        rig.disk.remove(LIST)
    found = rig.verify()
    missing = [one.path for one in found if one.fault == "its line is missing"]
    assert missing == [f"{SESSION}/{name}" for name in NAMES]
    assert rig.store.listed(SESSION) and rig.in_place()
    again = rig.verify()
    assert [one.done for one in again] == ([KEPT] if left == b"xyz" else [])


def test_deleted_list_without_records_is_named_until_the_car_tells(rig: Rig) -> None:
    rig.forget_records()
    rig.disk.remove(LIST)
    for _ in range(2):
        found = rig.verify()
        assert [(one.path, one.done) for one in found] == [
            (f"{SESSION}/{name}", UNLISTED) for name in NAMES
        ]
    for name, data in rig.data.items():
        put(rig.store, name, data)
    assert rig.verify() == [] and rig.disk.read(LIST) == rig.right


def test_damaged_line_without_its_file_stays_and_is_named_each_time(rig: Rig) -> None:
    line = f"{'0' * 64} x {NAMES[2]}".encode()
    rig.put(LIST, rig.right.replace(rig.right.splitlines()[2], line))
    rig.forget_records()
    rig.disk.remove(f"{SESSION}/{NAMES[2]}")
    for _ in range(2):
        (found,) = rig.verify()
        assert found.done == KEPT and "does not parse" in found.fault
        put(rig.store, "Plague-20261121T193100Z-0004.mcap", b"another")
    assert line in rig.disk.read(LIST), "never rewritten over"


def test_lost_segment_is_named_until_it_is_back_or_removed(rig: Rig) -> None:
    rig.put(f"{SESSION}/{NAMES[0]}", b"bent")
    (found,) = rig.verify()
    assert "set aside" in found.done
    for _ in range(2):
        (found,) = rig.verify()
        assert found.path.endswith(NAMES[0]) and found.fault == "file and line are missing"
    rig.store.remove(SESSION, ".trash/2026-11-24")
    assert rig.verify() == []


def test_file_and_line_prove_a_damaged_record_wrong(rig: Rig) -> None:
    there = rig.copies.of(SESSION)
    wrong = {**there[HERE].segments, NAMES[1]: "0" * 64}
    for place in (HERE, OFFICE):
        rig.copies.record(SESSION, place, wrong, 1.0)
    (found,) = rig.verify()
    assert "its record in .copies is damaged" in found.fault
    now = rig.copies.of(SESSION)
    assert now[HERE].segments[NAMES[1]] == hash_of(rig.data[NAMES[1]])
    assert NAMES[1] not in now[OFFICE].segments, "that copy is judged again"
    assert rig.verify() == [] and rig.in_place()


def test_record_that_cannot_be_decoded_is_named_and_written_again(rig: Rig) -> None:
    rig.put(RECORD, b'{"x')
    (found,) = rig.verify()
    assert found.path == RECORD and "cannot be decoded" in found.fault
    assert rig.verify() == []
    assert rig.copies.of(SESSION)[HERE].segments.keys() == set(NAMES)


def test_bad_file_proved_right_comes_back_without_a_transfer(rig: Rig) -> None:
    """Line and file disagree, no record is left, and the line was wrong."""
    rig.forget_records()
    wrong = rig.right.replace(rig.right[:64], b"0" * 64)
    rig.put(LIST, wrong)
    (found,) = rig.verify()
    assert "set aside" in found.done and not rig.store.find(CAR, NAMES[0], 33)
    assert rig.store.missing(CAR, NAMES[0], sums_of(rig.data[NAMES[0]])) == []
    put(rig.store, NAMES[0], rig.data[NAMES[0]])
    assert rig.verify() == [] and rig.disk.read(LIST) == rig.right


def test_unreadable_list_is_named_and_ends_no_scrub(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_right = rig.disk.read

    def read(path: str) -> bytes:
        if path == LIST:
            raise OSError(5, "Input/output error")
        return read_right(path)

    monkeypatch.setattr(rig.disk, "read", read)
    (found,) = rig.verify()
    assert (found.path, found.fault) == (SESSION, "Input/output error")


def test_line_with_the_checksum_of_another_segment_is_taken_off(rig: Rig) -> None:
    stray = rig.right[:64] + b"  Plague-20261121T193100Z-0009.mcap\n"
    rig.put(LIST, rig.right + stray)
    (found,) = rig.verify()
    assert found.path.endswith("0009.mcap") and found.done == OFF
    assert rig.disk.read(LIST) == rig.right


def test_lines_that_do_not_parse_keep_their_bytes() -> None:
    text = b"\xff\x00 odd\n" + b"0" * 64 + b"  \xff.mcap\n"
    listing = listing_of(SESSION, text)
    assert listing.lines == [] and listing.damaged == text.splitlines()


def test_near_texts_are_of_one_length() -> None:
    assert near("abcd" * 16, "abcx" * 1 + "abcd" * 15) and not near("abc", "abcd")
    assert not near(hash_of(b"a"), hash_of(b"b"))
