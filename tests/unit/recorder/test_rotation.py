"""File that a message goes into, and the moment it is sealed."""

import errno

import pytest
from testkit.recorder.recording import (
    CATALOGUE,
    UTC_NS,
    FakeFolder,
    about,
    counts,
    go_on,
    name,
    recorded,
    recording,
    second,
)

from fpvcar import config
from fpvcar.recorder.retention import CardFull, SpaceLimits
from fpvcar.recorder.rotation import Rotation, split
from fpvcar.recorder.writer import EncodedMessage
from fpvcar.runtime.units import MB, SECOND_NS


def item(at_s: float, key: bool = False) -> EncodedMessage:
    return EncodedMessage(1, int(at_s * SECOND_NS), b"x", key)


# --- start of the next file ---


def test_file_ends_before_a_key_frame() -> None:
    items = [item(0, True), item(4.9, True), item(5.1), item(5.5, True), item(5.6)]
    assert split(items, 0, 5 * SECOND_NS) == (items[:3], items[3:])
    assert split(items[:3], 0, 5 * SECOND_NS) == (items[:3], ())


def test_file_without_key_frames_ends_after_the_grace() -> None:
    items = [item(at_s) for at_s in (0, 5, 6, 6.9, 7, 8)]
    assert split(items, 0, 5 * SECOND_NS) == (items[:4], items[4:])


# --- the rotation ---


@pytest.fixture
def disk() -> FakeFolder:
    return FakeFolder()


def test_files_are_sealed_and_synced_once_per_segment(disk: FakeFolder) -> None:
    rotation = recorded(disk, 12)
    assert disk.names == [name(1), name(2), name(3) + ".part"]
    rotation.close()
    assert disk.names == [name(1), name(2), name(3)]
    for number, file in enumerate(disk.names, 1):
        made = disk.recording(file)
        assert made.whole and made.about is not None and made.about.segment == number
        assert disk.synced[file] == disk.files[file], "synced to its last byte"
    assert [counts(disk, file) for file in disk.names] == [15, 15, 6]
    assert disk.did[-1] == "leave"


def test_write_returns_after_the_data_is_synced(disk: FakeFolder) -> None:
    rotation = recorded(disk, 0)
    for number in range(3):
        go_on(rotation, [number])
        cut = disk.synced[name(1) + ".part"]
        assert recording(cut).counts["/camera"] == 3 * (number + 1)


def test_new_recording_begins_another_file(disk: FakeFolder) -> None:
    rotation = recorded(disk, 2)
    other = about(0)
    later = type(other)(other.car, other.version, "Plague-20261121T200000Z", 0, 1, {})
    rotation.begin(later, False)
    rotation.write(second(UTC_NS + 100 * SECOND_NS))
    assert disk.names == [name(1), "Plague-20261121T200000Z-0001.mcap.part"]


def test_taken_file_name_is_skipped(disk: FakeFolder) -> None:
    disk.files[name(1) + ".part"] = bytearray(b"x")
    rotation = recorded(disk, 1)
    assert name(2) + ".part" in disk.names
    assert rotation.leftovers == [name(1) + ".part"]


def test_rolling_holds_only_the_last_minute(disk: FakeFolder) -> None:
    rotation = recorded(disk, 200, rolling=True)
    rolling = [one for one in disk.names if one.endswith(".roll")]
    assert rolling == disk.names and 5 <= len(rolling) <= 6
    assert rotation.keep(UTC_NS + 199 * SECOND_NS) == 5
    rotation.write(second(UTC_NS + 200 * SECOND_NS))
    sealed = [one for one in disk.names if one.endswith(".mcap")]
    assert len(sealed) == 5 and [one + ".keep" for one in sealed] == [
        one for one in disk.names if one.endswith(".keep")
    ]
    assert sum(counts(disk, file) for file in sealed) >= 180
    rotation.close()
    assert not any(one.endswith(".roll") for one in disk.names)


def test_rolling_files_that_are_not_kept_are_removed(disk: FakeFolder) -> None:
    rotation = recorded(disk, 20, rolling=True)
    rotation.close()
    assert disk.names == []


def test_keeping_while_it_records_marks_the_files_of_the_minute(disk: FakeFolder) -> None:
    rotation = recorded(disk, 90)
    assert rotation.keep(UTC_NS + 89 * SECOND_NS) >= 12
    assert rotation.keep(UTC_NS + 89 * SECOND_NS) == 0, "they are kept already"
    kept = [one for one in disk.names if one.endswith(".keep")]
    assert name(1) + ".keep" not in kept and name(18) + ".keep" in kept


def test_files_older_than_the_minute_are_not_kept(disk: FakeFolder) -> None:
    rotation = recorded(disk, 20)
    assert rotation.keep(UTC_NS + 75 * SECOND_NS) == 1
    assert [one for one in disk.names if one.endswith(".keep")] == [name(4) + ".keep"]


def test_rolled_files_can_be_kept_after_recording_begins(disk: FakeFolder) -> None:
    rotation = recorded(disk, 20, rolling=True)
    other = about(0)
    later = type(other)(other.car, other.version, "Plague-20261121T193200Z", 0, 1, {})
    rotation.begin(later, False)
    rotation.write(second(UTC_NS + 20 * SECOND_NS))
    rotation.keep(UTC_NS + 21 * SECOND_NS)
    assert name(1) in disk.names and name(2) in disk.names


def test_full_card_removes_the_oldest_file() -> None:
    disk = FakeFolder(room=200_000)
    settings = config.Recording(segment_s=5.0, keep_free_mb=0, max_mb=8)
    rotation = recorded(disk, 5, settings)
    rotation._ring.room = SpaceLimits(keep_free=100_000, most=8 * MB)
    go_on(rotation, range(5, 40))
    assert name(1) not in disk.names and disk.free() >= 90_000
    assert any(one.endswith(".part") for one in disk.names)


def test_full_card_removes_other_files_before_the_current_drive() -> None:
    disk = FakeFolder(room=600_000)
    for number in range(1, 4):  # of a future day, by the present clock
        disk.files[f"Plague-20301121T193100Z-{number:04d}.mcap"] = bytearray(150_000)
    rotation = recorded(disk, 5, config.Recording(segment_s=5.0, keep_free_mb=0, max_mb=8))
    rotation._ring.room = SpaceLimits(keep_free=100_000, most=8 * MB)
    go_on(rotation, range(5, 20))
    assert name(1) in disk.names
    assert "Plague-20301121T193100Z-0001.mcap" not in disk.names


@pytest.mark.parametrize("segment_s", [5.0, 60.0], ids=["next file", "within one"])
def test_full_ring_raises_no_room_and_leaves_whole_files(segment_s: float) -> None:
    disk = FakeFolder(room=150_000)
    settings = config.Recording(segment_s=segment_s, station=True, max_mb=8)
    rotation = Rotation(disk, settings, CATALOGUE)
    rotation._ring.room = SpaceLimits(keep_free=100_000, most=8 * MB)
    rotation.begin(about(0), False)
    with pytest.raises(CardFull, match="until a base station has fetched some; make room, or sudo"):
        go_on(rotation, range(100))
    rotation.abandon()
    assert disk.names and all(one.endswith(".mcap") for one in disk.names)
    assert all(disk.recording(one).whole for one in disk.names)


def test_card_filling_inside_a_chunk_keeps_whole_chunks() -> None:
    disk = FakeFolder(room=60_000)
    settings = config.Recording(keep_free_mb=0, max_mb=8)
    rotation = recorded(disk, 0, settings)
    written = 0
    with pytest.raises(OSError, match="No space") as caught:
        for number in range(100):
            go_on(rotation, [number])
            written += 1
    assert caught.value.errno == errno.ENOSPC and written > 2
    rotation.abandon()
    made = disk.recording(name(1) + ".part")
    assert made.counts["/camera"] == 3 * written and not made.damage


def test_fault_begins_a_new_file_and_leaves_a_leftover(disk: FakeFolder) -> None:
    rotation = recorded(disk, 2)
    disk.fault = OSError(errno.EIO, "Input/output error")
    with pytest.raises(OSError):
        rotation.write(second(UTC_NS + 2 * SECOND_NS))
    rotation.abandon()
    disk.fault = None
    rotation.write(second(UTC_NS + 3 * SECOND_NS))
    assert disk.names == [name(1) + ".part", name(2) + ".part"]
    assert rotation.leftovers == [name(1) + ".part"]
    rotation.close()
    assert counts(disk, name(1) + ".part") == 6 and counts(disk, name(2)) == 3


def test_file_without_a_chunk_is_removed() -> None:
    disk = FakeFolder(room=2_500)
    rotation = recorded(disk, 0, config.Recording(keep_free_mb=0, max_mb=8))
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            rotation.write(second(UTC_NS))
        rotation.abandon()
    assert disk.names == []
