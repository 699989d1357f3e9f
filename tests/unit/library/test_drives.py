"""Drives: time ranges over files, from taking the wheel to leaving it."""

import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from fpvcar.library.deleted import NAME as DELETED
from fpvcar.library.deleted import DeletionRegister
from fpvcar.library.drives import SPLIT_S, Drive, DriveFilter, drives_of
from fpvcar.library.summaries import Entry
from fpvcar.library.titles import NAME as TITLES
from fpvcar.library.titles import Titles
from fpvcar.recordings.messages import Mark, Stint

BEGAN_MS = 1_763_755_200_000.0
RECORDING = "Plague-20251121T200000Z"


def at_ns(at_s: float) -> int:
    return round((BEGAN_MS / 1e3 + at_s) * 1e9)


def files(
    stints: Sequence[tuple[float, float, str]] | None,
    seconds: float,
    length_s: float = 60.0,
    recording: str = RECORDING,
    start_s: float = 0.0,
) -> list[Entry]:
    """Return a recording in files of a minute; `stints` are (from, to, name), s."""
    made = []
    for number in range(int(-(-seconds // length_s))):
        from_s = start_s + number * length_s
        to_s = min(from_s + length_s, start_s + seconds)
        mine = (
            None
            if stints is None
            else tuple(
                Stint(at_ns(max(a, from_s)), at_ns(min(b, to_s)), name, 1.0, {"estop": 1})
                for a, b, name in stints
                if a < to_s and b > from_s
            )
        )
        made.append(
            Entry(
                f"{recording}-{number + 1:04d}.mcap",
                BEGAN_MS + from_s * 1e3,
                to_s - from_s,
                100,
                "closed",
                9,
                stints=mine,
            )
        )
    return made


def shown(drives: Sequence[Drive]) -> list[tuple[float, float, bool, str]]:
    """Return (from, to, parked, files), the oldest first."""
    return [
        (
            round((one.start_ms - BEGAN_MS) / 1e3, 2),
            round((one.start_ms - BEGAN_MS) / 1e3 + one.seconds, 2),
            one.parked,
            " ".join(part.name[-9:-5] for part in one.parts),
        )
        for one in drives[::-1]
    ]


def test_thirty_seconds_without_driver_split_drives() -> None:
    stints = [(40.0, 80.0, "Ann"), (109.0, 130.0, "Bob"), (161.0, 170.0, "Ann")]
    assert shown(drives_of(files(stints, 240.0))) == [
        (0.0, 40.0, True, "0001"),
        (40.0, 130.0, False, "0001 0002 0003"),
        (130.0, 161.0, True, "0003"),
        (161.0, 170.0, False, "0003"),
        (170.0, 240.0, True, "0003 0004"),
    ]


def test_listing_rests_before_each_drive() -> None:
    """The car may be driven, and a card have thousands of drives."""
    rests: list[None] = []
    found = drives_of(files([(0.0, 20.0, "Ann")], 90.0), lambda: rests.append(None))
    assert len(rests) == len(found) == 2


def test_short_parked_ends_join_the_drive() -> None:
    assert shown(drives_of(files([(20.0, 100.0, "Ann")], 125.0))) == [
        (0.0, 125.0, False, "0001 0002 0003")
    ]
    assert shown(drives_of(files([], 90.0))) == [(0.0, 90.0, True, "0001 0002")]
    assert drives_of([]) == []


def test_drive_has_drivers_distance_and_stops() -> None:
    stints = [(0.0, 70.0, "Ann"), (75.0, 80.0, ""), (85.0, 110.0, "Bob")]
    (drive,) = drives_of(files(stints, 120.0))
    assert drive.drivers == ("Ann", "Bob")
    assert drive.metres == 4.0 and drive.stops == {"estop": 4}
    assert drive.bytes == 200 and drive.id == f"{RECORDING}-0001@0"


def test_file_without_stints_is_a_drive() -> None:
    (drive,) = drives_of(files(None, 150.0))
    assert not drive.parked and drive.drivers == () and drive.metres is None
    assert len(drive.parts) == 3 and drive.seconds == 150.0


def test_files_further_apart_are_two_drives() -> None:
    near = files([(0.0, 60.0, "Ann")], 60.0)
    for pause_s, count in ((4.0, 1), (6.0, 2), (-0.5, 1), (-2.0, 2)):
        start_s = 60.0 + pause_s
        later = files([(start_s, start_s + 60.0, "Ann")], 60.0, 60.0, "Plague-2", start_s)
        assert len(drives_of([*later, *near])) == count, pause_s


def test_files_at_the_same_time_are_two_runs() -> None:
    """The clock was set back between the two runs."""
    was = files([(0.0, 180.0, "Ann")], 180.0)
    now = files([(65.0, 185.0, "Bob")], 120.0, recording="Plague-B", start_s=65.0)
    found = drives_of([*was, *now])
    assert [one.drivers for one in found] == [("Bob",), ("Ann",)]
    assert [len(one.parts) for one in found] == [2, 3]


def test_shared_file_is_marked_in_both_drives() -> None:
    stints = [(10.0, 70.0, "Ann"), (105.0, 170.0, "Bob")]
    bob, parked, ann = drives_of(files(stints, 180.0))
    assert [one.shared for one in ann.parts] == [False, True]
    assert [one.shared for one in bob.parts] == [True, False]
    assert [one.shared for one in parked.parts] == [True]


def test_file_shared_only_with_parked_time_belongs_to_drive() -> None:
    found = drives_of(files([(100.0, 110.0, "Ann")], 240.0))
    parked, ann, before = found
    assert [one.shared for one in ann.parts] == [False]
    assert [one.shared for one in before.parts] == [False, True]
    assert [one.shared for one in parked.parts] == [True, False, False]


def test_empty_damaged_files_are_listed_as_a_drive() -> None:
    broken = [
        Entry(f"{RECORDING}-{n:04d}.mcap", BEGAN_MS, 0.0, 5, "damaged", 0, "no MCAP")
        for n in (1, 2)
    ]
    (drive,) = drives_of(broken)
    assert drive.state == "damaged" and len(drive.parts) == 2
    stints = [(0.0, 60.0, "Ann")]
    both = drives_of([*files(stints, 60.0), *broken])
    assert sorted(one.state for one in both) == ["closed", "damaged"]


def test_marks_and_state_come_from_the_range_of_a_drive() -> None:
    one, two = files([(0.0, 20.0, "Ann"), (70.0, 110.0, "Ann")], 120.0)
    marks = (Mark(5.0, "here"), Mark(30.0, "there"))
    one = msgspec.structs.replace(one, marks=marks)
    two = msgspec.structs.replace(two, state="open", name="x-0002.mcap.part")
    last, parked, first = drives_of([one, two])
    assert [mark.text for mark in first.parts[0].marks] == ["here"]
    assert [mark.text for mark in parked.parts[0].marks] == ["there"]
    assert (first.state, last.state) == ("closed", "open")


@pytest.mark.parametrize("seed", range(20))
def test_drives_cover_a_run_without_gaps(seed: int) -> None:
    """For any driving: the drives of a run are adjacent without a gap, each file is in a drive,
    no drive is near zero length, and no pause in a drive is SPLIT_S long."""
    rolled = random.Random(seed)
    edges = sorted(rolled.uniform(0.0, 900.0) for _ in range(rolled.randrange(0, 30, 2)))
    stints = [(a, b, "Ann") for a, b in zip(edges[::2], edges[1::2], strict=True)]
    entries = files(stints, 900.0)
    drives = drives_of(entries)[::-1]
    assert drives[0].start_ms == BEGAN_MS
    for one, after in itertools.pairwise(drives):
        assert one.start_ms + one.seconds * 1e3 == pytest.approx(after.start_ms, abs=1)
        assert one.parked != after.parked and (not one.parked or one.seconds >= SPLIT_S)
    assert {part.name for one in drives for part in one.parts} == {one.name for one in entries}


@pytest.mark.parametrize(
    ("from_s", "to_s"), [(50.0, 50.02), (50.0, 50.0), (59.99, 60.01), (59.97, 60.03), (59.9, 59.9)]
)
def test_near_zero_drive_has_an_unshared_file(from_s: float, to_s: float) -> None:
    """Drives at the end of a file count, too; their file is not deleted with the parked time."""
    last, ann, first = drives_of(files([(from_s, to_s, "Ann")], 120.0))
    assert ann.drivers == ("Ann",) and ann.parts and not ann.parts[0].shared
    assert len({last.id, ann.id, first.id}) == 3
    for part in ann.parts:
        assert 0.0 <= part.from_s <= part.to_s <= part.seconds
    parked = [part for one in (first, last) for part in one.parts]
    assert all(one.shared for one in parked if one.name == ann.parts[0].name)


@pytest.mark.parametrize("seed", range(50))
def test_odd_stints_still_give_valid_drives(seed: int) -> None:
    """Spans are short, empty, backwards or at another time; files have any length, with gaps."""
    rolled = random.Random(seed)
    entries, at_s = list[Entry](), 0.0
    for number in range(12):
        seconds = rolled.choice([0.0, 0.03, rolled.uniform(0.0, 90.0)])
        edges = [at_s + rolled.uniform(-5.0, 95.0) for _ in range(4)]
        stints = tuple(
            Stint(at_ns(edge), at_ns(edge + rolled.choice([-9.0, 0.0, 0.02, 9.0])))
            for edge in edges[: rolled.randrange(5)]
        )
        entries.append(
            Entry(
                f"{RECORDING}-{number:04d}.mcap",
                BEGAN_MS + at_s * 1e3,
                seconds,
                100,
                "closed",
                9,
                stints=stints,
            )
        )
        at_s += seconds + rolled.choice([0.0, 0.01, -0.5, 4.9, 40.0])
    drives = drives_of(entries)
    parts = [part for one in drives for part in one.parts]
    assert {one.name for one in parts} == {one.name for one in entries}
    assert all(one.parts and one.seconds >= 0.0 for one in drives)
    assert len({one.id for one in drives}) == len(drives)
    for part in parts:
        assert 0.0 <= part.from_s <= part.to_s <= part.seconds


def named(drives: Sequence[Drive]) -> list[str]:
    return [one.title for one in drives]


def test_title_survives_deletion_of_some_files(tmp_path: Path) -> None:
    stints = [(0.0, 170.0, "Ann"), (300.0, 350.0, "Bob")]
    entries = files(stints, 360.0)
    there = [one.name for one in entries]
    bob, parked, ann = drives_of(entries)
    Titles(tmp_path).name(ann, "To the kitchen", there)
    titles = Titles(tmp_path)  # another process
    assert named(titles.named(drives_of(entries))) == ["", "", "To the kitchen"]
    assert named(titles.named(drives_of(entries[2:])))[-1] == "To the kitchen"
    titles.name(bob, "Back", there)
    titles.name(ann, "", there)
    assert named(titles.named(drives_of(entries))) == ["Back", "", ""]
    titles.name(parked, "Nothing", there[3:4])
    kept = Titles(tmp_path).named(drives_of(entries))
    assert named(kept) == ["", "Nothing", ""], "of files that are gone it is forgotten"
    assert (tmp_path / TITLES).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("wrong", [b"", b"[]", b'{"a":5}', b"\xff", b"[" * 100_000])
def test_unreadable_titles_file_is_set_aside(tmp_path: Path, wrong: bytes) -> None:
    (tmp_path / TITLES).write_bytes(wrong)
    (drive,) = drives_of(files(None, 50.0))
    titles = Titles(tmp_path)
    assert named(titles.named([drive])) == [""]
    titles.name(drive, "New", [drive.parts[0].name])
    assert named(Titles(tmp_path).named([drive])) == ["New"]
    assert (tmp_path / ".titles.bad").read_bytes() == wrong


def test_unreadable_title_or_deletion_loses_only_itself(tmp_path: Path) -> None:
    bob, _, ann = drives = drives_of(files([(0.0, 170.0, "Ann"), (300.0, 350.0, "Bob")], 360.0))
    there = [part.name for drive in drives for part in drive.parts]
    Titles(tmp_path).name(ann, "To the kitchen", there)
    Titles(tmp_path).name(bob, "Back", there)
    path = tmp_path / TITLES
    notes = json.loads(path.read_bytes())
    notes |= {"drive-9": 7}
    notes[next(iter(notes))] += [["later", {"emoji": 1}]]
    path.write_text(text := json.dumps(notes))
    titles = Titles(tmp_path)
    assert named(titles.named(drives)) == ["Back", "", "To the kitchen"]
    titles.name(bob, "", there)
    assert named(Titles(tmp_path).named(drives)) == ["", "", "To the kitchen"]
    assert (tmp_path / ".titles.bad").read_text() == text
    (tmp_path / DELETED).write_text('{"drive-9": [[1, 2], [5.0, 0.0, 9.0]]}')
    entry = msgspec.structs.replace(files(None, 50.0)[0], name="drive-9.mcap", start_ms=5.0)
    assert DeletionRegister(tmp_path).gone()(entry, 1.0, 8.0)


def test_titles_on_a_failing_card_hide_no_drive(tmp_path: Path) -> None:
    (tmp_path / TITLES).mkdir()
    (drive,) = drives_of(files(None, 50.0))
    titles = Titles(tmp_path)
    assert named(titles.named([drive])) == [""]
    with pytest.raises(OSError):
        titles.name(drive, "New", [drive.parts[0].name])


def test_rest_of_a_deleted_drive_is_not_listed(tmp_path: Path) -> None:
    """The rest may be in the middle of a file, or at its end; it shares no file any more."""
    stints = [(0.0, 70.0, "Ann"), (105.0, 200.0, "Bob"), (235.0, 300.0, "Eve")]
    entries = files(stints, 300.0)
    eve, _, bob, _, ann = drives_of(entries)
    assert [part.shared for part in bob.parts] == [True, False, True]
    there = [one.name for one in entries]
    DeletionRegister(tmp_path).note([part for part in bob.parts if part.shared], there)
    gone = DeletionRegister(tmp_path).gone()  # another process
    assert bob in drives_of(entries, gone=gone), "its own file is there"
    left = drives_of([*entries[:2], *entries[3:]], gone=gone)
    assert [(one.drivers, one.start_ms, one.seconds) for one in left if not one.parked] == [
        (one.drivers, one.start_ms, one.seconds) for one in (eve, ann)
    ]
    assert not any(part.shared for one in left for part in one.parts if not one.parked)


def test_drive_without_a_file_of_its_own_can_be_deleted(tmp_path: Path) -> None:
    entries = files([(0.0, 10.0, "Ann"), (41.0, 45.0, "Bob"), (76.0, 90.0, "Eve")], 90)
    bob = drives_of(entries)[2]
    assert bob.drivers == ("Bob",) and [part.shared for part in bob.parts] == [True]
    deleted = DeletionRegister(tmp_path)
    deleted.note(bob.parts, [one.name for one in entries])
    left = drives_of(entries, gone=deleted.gone())
    assert bob not in left and len(left) == 4
    other = msgspec.structs.replace(entries[0], start_ms=entries[0].start_ms + 5.0)
    assert len(drives_of([other], gone=deleted.gone())) == 3, "of the same name"


def test_deletion_record_is_removed_with_its_file(tmp_path: Path) -> None:
    first, second = drives_of(files([(0.0, 10.0, "Ann"), (45.0, 60.0, "Bob")], 60))[::2]
    deleted = DeletionRegister(tmp_path)
    deleted.note([], [])
    assert not (tmp_path / DELETED).exists(), "the card is spared"
    name = first.parts[0].name
    for one in (first, second):
        deleted.note(one.parts, [name])
    assert len(json.loads((tmp_path / DELETED).read_bytes())[name[:-5]]) == 2
    deleted.note([], ["another.mcap"])
    assert (tmp_path / DELETED).read_bytes() == b"{}"


def test_list_is_filtered_by_each_criterion() -> None:
    entries = files([(0.0, 20.0, "Ann"), (60.0, 110.0, "Bob")], 120.0)
    marks = (Mark(5.0, "Look HERE"),)
    entries[0] = msgspec.structs.replace(entries[0], marks=marks)
    drives = drives_of(entries)

    def starts(**wanted: object) -> list[float]:
        takes = DriveFilter(**wanted).takes  # type: ignore[arg-type]
        return [(one.start_ms - BEGAN_MS) / 1e3 for one in drives if takes(one)]

    assert starts() == [60.0, 20.0, 0.0]
    assert starts(driver="Bob") == [60.0] and starts(driver="Eve") == []
    assert starts(wheel="parked") == [20.0] and starts(wheel="driven") == [60.0, 0.0]
    assert starts(since_ms=BEGAN_MS + 1, until_ms=BEGAN_MS + 60_000) == [20.0]
    assert starts(text="look here") == [0.0] and starts(text="nowhere") == []
    assert starts(text="emergency", causes=frozenset({"estop"})) == [60.0, 0.0]
    entries[0] = msgspec.structs.replace(entries[0], marks=(Mark(30.0, "there"),))
    marked = drives_of(entries)[1]
    assert marked.parked and DriveFilter(wheel="driven").takes(marked)
    titled = msgspec.structs.replace(drives[1], title="Parked at HOME")
    assert DriveFilter(text="home").takes(titled)
