"""Files that the ring removes, the room left before, and the page's figures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.recorder.recorder import Rig
from testkit.recorder.recording import (
    CATALOGUE,
    UTC_NS,
    FakeFolder,
    about,
    go_on,
    name,
    recorded,
    second,
)

from fpvcar import config
from fpvcar.recorder.retention import Removal, SpaceLimits, Usage, make_room, use_of
from fpvcar.recorder.rotation import Rotation
from fpvcar.recordings import names
from fpvcar.runtime.units import MB, SECOND_NS

ROOM = SpaceLimits(keep_free=100, most=1000)
SOME = st.lists(st.tuples(st.integers(0, 300), st.booleans()), max_size=6)


FILES = [(name(number), 10) for number in range(1, 6)]


ACK, KEEP = (name(4) + ".ack", 0), (name(1) + ".keep", 0)
OPEN = [(name(1) + ".part", 10), (name(2) + ".roll", 10)]
CAPPED = SpaceLimits(100, 25)


@pytest.mark.parametrize(
    ("files", "free", "room", "station", "gone", "enough"),
    [
        pytest.param(FILES, 100, ROOM, False, [], True, id="enough room"),
        pytest.param(FILES, 85, ROOM, False, [1, 2], True, id="oldest first"),
        pytest.param(FILES, 100, CAPPED, False, [1, 2, 3], True, id="capped"),
        pytest.param(FILES, 0, ROOM, True, [], False, id="station without any"),
        pytest.param([*FILES, ACK], 85, ROOM, True, [4], False, id="station has one"),
        pytest.param([*FILES, ACK], 95, ROOM, True, [4], True, id="station has enough"),
        pytest.param([*FILES, ACK, KEEP], 85, ROOM, False, [4, 2], True, id="acknowledged first"),
        pytest.param([*FILES, ACK, KEEP], 0, ROOM, False, [4, 2, 3, 5], False, id="kept stay"),
        pytest.param(OPEN, 0, ROOM, False, [], False, id="open files stay"),
    ],
)
def test_room_is_made_by_fetched_and_then_the_oldest_files(
    files: list[tuple[str, int]],
    free: int,
    room: SpaceLimits,
    station: bool,
    gone: list[int],
    enough: bool,
) -> None:
    verdict = make_room(names.files_of(files), free, room, station)
    assert verdict == Removal(tuple(map(name, gone)), enough)


def test_wrong_clock_removes_the_current_drive_last() -> None:
    now = [(f"Plague-19700101T000{n}00Z-0001.mcap", 10) for n in (1, 2)]
    files = names.files_of([*now, *FILES])
    current = "Plague-19700101T000200Z"
    some = make_room(files, 75, ROOM, False, current)
    assert some == Removal((now[0][0], name(1), name(2)), True)
    most = make_room(files, 0, ROOM, False, current)
    assert most.gone[-1] == now[1][0] and not most.enough


# --- room left ---


def test_room_left_ends_at_the_nearer_bound() -> None:
    assert ROOM.left(500, Usage()) == 400
    assert ROOM.left(5000, Usage(own=700)) == 300
    assert ROOM.left(90, Usage()) == ROOM.left(5000, Usage(own=1200)) == 0


def test_acknowledged_files_count_as_room() -> None:
    files = names.files_of(
        [(name(1), 10), (name(1) + ".ack", 0), (name(2), 20), (name(3) + ".part", 5)]
    )
    assert use_of(files) == Usage(10, 25)
    assert ROOM.left(120, Usage(10, 25)) == 30


@given(SOME, st.integers(0, 1500), st.integers(0, 300), st.integers(0, 1500))
def test_room_left_and_make_room_agree_to_the_byte(
    some: list[tuple[int, bool]], free: int, keep_free: int, most: int
) -> None:
    """Check that exactly this size fits without a loss, and one byte more does not."""
    room = SpaceLimits(keep_free, most)
    entries = [(name(number), size) for number, (size, _) in enumerate(some)]
    fetched = [name(number) for number, (_, has) in enumerate(some) if has]
    entries += [(one + ".ack", 0) for one in fetched]
    left = room.left(free, use_of(names.files_of(entries)))
    if left:
        for more in (0, 1):
            grown = names.files_of([*entries, (name(9) + ".part", left + more)])
            verdict = make_room(grown, free - left - more, room, True)
            assert verdict.enough is not bool(more)
            assert set(verdict.gone) <= set(fetched)


@pytest.mark.parametrize("card", [6 * MB, 20 * MB])
def test_rotation_knows_the_room_left_after_each_write(card: int) -> None:
    disk = FakeFolder(room=card)
    settings = config.Recording(segment_s=5.0, keep_free_mb=2, max_mb=8)
    disk.files[name(1)] = bytearray(MB)
    disk.files[name(1) + ".ack"] = bytearray()
    rotation = Rotation(disk, settings, CATALOGUE)
    assert rotation.left is None, "nobody looked yet"
    rotation.begin(about(0), False)
    for number in range(17):
        go_on(rotation, [number])
        own = sum(len(disk.files[one]) for one in disk.names) - MB
        assert rotation.left == min(disk.free() + MB - 2 * MB, 8 * MB - own)
    assert len(disk.names) == 6, "an acknowledged one, its mark, three sealed, the open"


def test_room_left_stays_right_after_a_file_is_removed() -> None:
    disk = FakeFolder(room=3 * MB)
    settings = config.Recording(keep_free_mb=2, max_mb=8)
    disk.files[name(1)] = bytearray(MB - 30_000)
    disk.files[name(1) + ".ack"] = bytearray()
    rotation = recorded(disk, 0, settings)
    for number in range(6):
        go_on(rotation, [number])
        spare = len(disk.files.get(name(1), b""))
        assert rotation.left == disk.free() + spare - 2 * MB
    assert disk.names == [name(2) + ".part"]
    own = len(disk.files[name(2) + ".part"])
    rotation._ring.room = SpaceLimits(keep_free=0, most=MB)
    rotation.write(second(UTC_NS + 6 * SECOND_NS))
    assert own < len(disk.files[name(2) + ".part"]) == MB - (rotation.left or 0)


def test_status_reports_free_space_and_station() -> None:
    for station in (False, True):
        rig = Rig(keep_free_mb=100, max_mb=8, station=station)
        assert rig.recorder.status().free_mb is None
        rig.drive(2)
        told = rig.recorder.status()
        used = sum(map(len, rig.disk.files.values()))
        assert told.free_mb == pytest.approx((8 * MB - used) / MB)
        assert told.station is station
