"""Recordings of a parked car are removed before drives."""

import math

from testkit.recorder.recorder import Rig
from testkit.recorder.recording import (
    CATALOGUE,
    SETTINGS,
    UTC_NS,
    FakeFolder,
    about,
    go_on,
    name,
    played_sources,
    recorded,
    second,
)

from fpvcar.recorder.feed import Feed
from fpvcar.recorder.retention import Removal, SpaceLimits, make_room
from fpvcar.recorder.rotation import Rotation
from fpvcar.recordings import messages, names
from fpvcar.recordings.names import File
from fpvcar.runtime.units import SECOND_NS

ROOM = SpaceLimits(keep_free=100, most=1000)
OFFSET_NS = about(0).utc_offset_ns


def files(count: int, *parked: int) -> list[File]:
    """Return `count` files of ten bytes."""
    entries = [(name(number), 10) for number in range(1, count + 1)]
    return names.files_of(entries + [(name(one) + ".parked", 0) for one in parked])


def test_parked_files_are_removed_before_the_oldest() -> None:
    some = files(8, 3, 5)
    assert make_room(some, 95, ROOM, False) == Removal((name(3),), True)
    more = make_room(some, 65, ROOM, False)
    assert more == Removal((name(3), name(5), name(1), name(2)), True)


def test_newest_parked_files_rank_as_drives() -> None:
    """Otherwise a log of sensors would be removed as it is made, in a ring full of drives."""
    some = files(16, 2, 15, 16)
    verdict = make_room(some, 0, ROOM, False)
    assert verdict.gone[:3] == (name(2), name(1), name(3))
    assert verdict.gone[-2:] == (name(9), name(10)), "then the oldest"
    most = make_room(some, 0, SpaceLimits(1000, 9999), False)
    assert most.gone[-2:] == (name(15), name(16)), "the newest last"


def test_parked_file_stays_until_the_station_has_it() -> None:
    assert make_room(files(8, 3), 0, ROOM, True) == Removal((), False)


def test_car_counts_as_attended_by_default() -> None:
    rotation = Rotation(FakeFolder(), SETTINGS, CATALOGUE)
    assert rotation.attended_ns == math.inf


def attended(disk: FakeFolder, seconds: range, attended_s: range) -> Rotation:
    """Record files of five seconds; the wheel is taken only during `attended_s`."""
    rotation = recorded(disk, 0)
    rotation.attended_ns = 0
    for number in seconds:
        at_ns = UTC_NS + number * SECOND_NS
        if number in attended_s:
            rotation.attended_ns = at_ns - OFFSET_NS
        rotation.write(second(at_ns))
    return rotation


def parked(disk: FakeFolder) -> list[int]:
    """Return the numbers of those files."""
    marks = [one for one in disk.names if one.endswith(".parked")]
    found = [names.parse(one.removesuffix(".parked")) for one in marks]
    return [one.number for one in found if one is not None]


def test_file_without_any_driver_is_marked_parked() -> None:
    disk = FakeFolder()
    disk.files[name(3) + ".parked"] = bytearray()  # its file was removed
    attended(disk, range(26), range(9, 12))
    assert parked(disk) == [1, 4, 5]


def test_parked_file_that_is_kept_stays() -> None:
    disk = FakeFolder()
    rotation = attended(disk, range(26), range(0))
    assert parked(disk) == [1, 2, 3, 4, 5]
    rotation.keep(UTC_NS + 26 * SECOND_NS)
    some = names.files_of(disk.entries())
    assert make_room(some, 0, ROOM, False) == Removal((), False)


def test_night_on_the_charger_leaves_the_drives() -> None:
    disk = FakeFolder()
    rotation = attended(disk, range(200), range(100))
    drives = [name(number) for number in range(1, 21)]
    used = sum(map(len, disk.files.values()))
    rotation._ring.room = SpaceLimits(keep_free=0, most=used)
    go_on(rotation, range(200, 600))
    assert set(drives) < set(disk.names)
    assert name(119) in disk.names and name(25) not in disk.names
    for mark in (one for one in disk.names if one.endswith(".parked")):
        assert mark.removesuffix(".parked") in disk.names, "they go together"


def test_parked_files_of_the_last_minute_are_not_removed() -> None:
    disk = FakeFolder()
    rotation = attended(disk, range(100), range(100))
    used = sum(map(len, disk.files.values()))
    rotation._ring.room = SpaceLimits(keep_free=0, most=used)
    go_on(rotation, range(100, 151))
    assert parked(disk) == list(range(21, 31))
    assert {name(number) for number in range(21, 31)} < set(disk.names)
    assert name(1) not in disk.names, "something had to go"


def car(rig: Rig) -> Feed:
    return Feed(rig.recorder, played_sources())


def test_driver_or_mark_makes_a_file_attended() -> None:
    rig = Rig(segment_s=5.0)
    feed = car(rig)

    def goes(seconds: int) -> None:
        for _ in range(seconds):
            feed._second(lambda: messages.Health("ok", "ok", "ok"))
            rig.drive(1)

    goes(10)
    feed.turn("Ann", "Ann took the wheel")
    goes(20)
    feed.turn(None, "Ann released the wheel")
    goes(15)
    feed.mark("a noise", "Ann")
    goes(11)
    assert parked(rig.disk) == [1, 8, 11]
    assert feed.broken == set()
