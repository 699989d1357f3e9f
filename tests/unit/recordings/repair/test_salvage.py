"""Salvage of files left open by an earlier run: sealed in place, without disturbing the drive."""

import contextlib
import io
import os
import random
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcap.reader import make_reader
from testkit.recorder.recording import CATALOGUE, BytesSource, file, recording, small_files

from fpvcar.recordings.mcap import parsing, records
from fpvcar.recordings.mcap.tail import tail_of
from fpvcar.recordings.mcap.walk import Walk
from fpvcar.recordings.repair import salvage
from fpvcar.recordings.repair.recover import Ending
from fpvcar.recordings.repair.salvage import Salvager

NAME = "Plague-20261121T193100Z-0001.mcap"
CHUNKS = 6
WHOLE, OPEN = file(CHUNKS), file(CHUNKS, closed=False)
SPANS = recording(OPEN).chunks
MS = 1_000_000


def ending_of(data: bytes) -> Ending:
    ending = Ending()
    for one in Walk(BytesSource(data), len(data)).steps():
        ending.note(one)
    return ending


def ended(data: bytes) -> bytes:
    """Close the file at its present end."""
    ending = ending_of(data)
    return data[: ending.cut] + ending.appended()


def flipped(data: bytes, *places: int) -> bytes:
    out = bytearray(data)
    for at in places:
        out[at] ^= 0x10
    return bytes(out)


def messages_of(data: bytes) -> list[tuple[int, bytes]]:
    return [(one.log_ns, one.data) for one in recording(data).messages()]


def as_others_read(data: bytes) -> list[tuple[int, bytes]]:
    """Read by the indexes like a foreign reader; in the order of the file."""
    found = make_reader(io.BytesIO(data), validate_crcs=True).iter_messages(log_time_order=False)
    return [(one.log_time, one.data) for _, _, one in found]


def index_counts(data: bytes) -> list[int]:
    """Count the message indexes of each chunk; all of them are where the summary says."""
    made, counts = recording(data), []
    summary = make_reader(io.BytesIO(data)).get_summary()
    assert summary is not None
    for chunk in summary.chunk_indexes:
        for number, at in chunk.message_index_offsets.items():
            assert made.head_at(at) == (records.MESSAGE_INDEX, number)
        counts.append(len(chunk.message_index_offsets))
        assert bool(chunk.message_index_length) is bool(counts[-1])
    return counts


# --- the bytes ---


@pytest.mark.parametrize("chunks", [1, 4, 12])
def test_salvaged_file_equals_a_closed_file(chunks: int) -> None:
    assert ended(file(chunks, closed=False)) == file(chunks)


def test_file_cut_anywhere_keeps_all_whole_chunks() -> None:
    for number, span in enumerate(SPANS[1:], 1):
        behind = SPANS[number + 1].at if span != SPANS[-1] else len(OPEN)
        for at in (span.at, span.at + 1, span.at + 9, span.at + 300):
            assert ended(OPEN[:at]) == file(number), "a torn chunk"
        end = span.at + span.length
        for at in range(end, behind, 29):
            assert ended(OPEN[:at]) == file(number + 1), "its indexes are torn"


def test_second_power_cut_while_sealing_loses_nothing() -> None:
    for data in (file(2, closed=False), OPEN[: SPANS[2].at + 500]):
        done, kept = ended(data), messages_of(data)
        begin = done.index(records.data_end(), recording(data).chunks[-1].at)
        for size in range(begin, len(done), 211):
            assert ended(done[:size]) == done
            sized = ended(done[:size] + bytes(len(done) - size))
            assert recording(sized).closed and messages_of(sized) == kept, "no data yet"


def test_small_file_cut_anywhere_is_sealed() -> None:
    whole = small_files()[1]
    for size in range(len(whole) // 2, len(whole), 13):
        done = recording(ended(whole[:size]))
        assert done.whole
        assert list(done.messages()) == list(recording(whole[:size]).messages())


def test_damaged_chunk_costs_no_other_chunk() -> None:
    for number in (0, 2, CHUNKS - 1):
        bad = flipped(OPEN, SPANS[number].at + 200)
        done = ended(bad)
        assert done.startswith(bad), "another reading may find it good: it stays"
        made = recording(done)
        assert made.closed and len(made.damage) == 1 and made.about is not None
        assert list(made.messages()) == list(recording(bad).messages())
        assert as_others_read(done) == messages_of(bad)


def test_damaged_indexes_lose_no_message() -> None:
    end = SPANS[2].at + SPANS[2].length
    for places in ((end + 20,), (end + 9,), (SPANS[3].at - 3,)):
        bad = flipped(OPEN, *places)
        done = ended(bad)
        assert done.startswith(bad)
        assert recording(done).closed and messages_of(done) == messages_of(WHOLE)
        assert as_others_read(done) == messages_of(WHOLE)
        counts = index_counts(WHOLE)
        assert index_counts(done) == [*counts[:2], 0, *counts[3:]]
    done = ended(flipped(OPEN, SPANS[-1].at + SPANS[-1].length + 1))
    assert messages_of(done) == messages_of(WHOLE) == as_others_read(done)
    assert index_counts(done) == [*index_counts(WHOLE)[:-1], 0]


@pytest.mark.parametrize("between", [b"", records.metadata("somebody's", {"a": "b"})])
def test_chunk_without_its_indexes_behind_it_is_listed_without_them(between: bytes) -> None:
    end = SPANS[2].at + SPANS[2].length
    behind = OPEN[end:] if between else OPEN[SPANS[3].at :]
    done = ended(OPEN[:end] + between + behind)
    assert messages_of(done) == messages_of(WHOLE) == as_others_read(done)
    counts = index_counts(WHOLE)
    assert all(counts) and index_counts(done) == [*counts[:2], 0, *counts[3:]]


def test_foreign_records_between_chunks_are_kept_and_skipped() -> None:
    front, at = OPEN[: SPANS[1].at], SPANS[1].at
    other = records.metadata("somebody's", {"a": "b"})
    private = records.record(0x0F, bytes(4))  # claims that the data end here
    schemas = CATALOGUE.schemas + CATALOGUE.channels
    bare = records.chunk_head(0, 0, schemas) + schemas
    for between in (other, private, bare):
        done = ended(front + between + OPEN[at:])
        assert recording(done).closed
        assert messages_of(done) == messages_of(WHOLE) == as_others_read(done)
        assert index_counts(done) == index_counts(WHOLE)


def test_file_without_channels_is_not_readable() -> None:
    for bad, readable in (((0,), True), ((0, 1), False)):
        ending = ending_of(flipped(OPEN, *(SPANS[one].at + 200 for one in bad)))
        assert ending.readable is readable and ending.chunks == CHUNKS - len(bad)


def worn(data: bytes, dice: random.Random) -> bytes:
    """Damage the bytes like time and power cuts."""
    out = bytearray(data)
    for _ in range(dice.randrange(4)):
        at = dice.randrange(len(out))
        match dice.randrange(4):
            case 0:
                out[at] ^= 1 << dice.randrange(8)
            case 1:
                del out[max(at, len(out) // 2) :]
            case 2:
                out[at:at] = dice.randbytes(dice.randrange(40))
            case _:
                out += bytes(dice.randrange(50))
    return bytes(out)


@pytest.mark.parametrize("seed", range(10))
def test_sealing_a_damaged_file_keeps_its_readable_messages(seed: int) -> None:
    dice, sealed = random.Random(seed), 0
    for _ in range(40):
        data = worn(dice.choice(small_files()[1:]), dice)
        ending = ending_of(data)
        if tail_of(BytesSource(data)) is None and ending.chunks and ending.readable:
            sealed += 1
            done = recording(ended(data))
            assert done.closed
            assert list(done.messages()) == list(recording(data).messages())
    assert sealed > 20


# --- the files ---


@pytest.fixture
def part(tmp_path: Path) -> Path:
    path = tmp_path / (NAME + ".part")
    path.write_bytes(OPEN)
    path.chmod(0o600)
    return path


def seal(part: Path) -> int:
    """Seal a file; return the number of steps."""
    return sum(1 for _ in salvage.salvage(part.parent, part.name))


def test_file_is_sealed_in_place(part: Path) -> None:
    place = part.stat().st_ino
    with part.open("ab") as torn:
        torn.write(records.HEAD.pack(records.CHUNK, 10**6) + bytes(10**5))
    assert seal(part) > CHUNKS, "a little at each step"
    sealed = part.with_name(NAME)
    assert [one.name for one in part.parent.iterdir()] == [NAME]
    assert sealed.stat().st_ino == place, "no minute is copied"
    assert stat.S_IMODE(sealed.stat().st_mode) == 0o600
    assert sealed.read_bytes()[: len(OPEN)] == OPEN
    assert recording(sealed.read_bytes()).whole


def test_power_cut_at_any_step_leaves_open_or_sealed_file(part: Path) -> None:
    steps = salvage.salvage(part.parent, part.name)
    assert {part.read_bytes() for _ in steps} == {OPEN, WHOLE}
    assert part.with_name(NAME).read_bytes() == WHOLE


def test_sealed_file_is_synced_before_its_rename_and_the_folder_after(
    part: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, unclosed, *_ = small_files()  # its end fits into the file's buffer
    part.write_bytes(unclosed)
    done: list[tuple[str, bool]] = []

    def watch(name: str, act: Callable[..., None]) -> None:
        def watched(*given: Any) -> None:
            done.append((name, part.exists() and part.read_bytes() == whole))
            act(*given)

        monkeypatch.setattr(os, name, watched)

    for name in ("fdatasync", "rename", "fsync"):
        watch(name, getattr(os, name))
    seal(part)
    assert done == [("fdatasync", True), ("rename", True), ("fsync", False)]


def test_closed_file_with_a_part_name_is_renamed(part: Path) -> None:
    part.write_bytes(WHOLE)
    before = part.stat().st_mtime_ns
    seal(part)
    sealed = part.with_name(NAME)
    assert sealed.read_bytes() == WHOLE and sealed.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "data",
    [b"", OPEN[:200], OPEN[: SPANS[0].at], OPEN[: SPANS[0].at + 900]],
    ids=["empty", "torn head", "head", "torn chunk"],
)
def test_file_without_a_whole_chunk_is_deleted(part: Path, data: bytes) -> None:
    part.write_bytes(data)
    seal(part)
    assert list(part.parent.iterdir()) == []


ONE = file(1, closed=False)
NO_CHANNELS = flipped(OPEN, SPANS[0].at + 200, SPANS[1].at + 200)


@pytest.mark.parametrize(
    "data",
    [b"something else", bytes(4096), flipped(ONE, SPANS[0].at + 200), NO_CHANNELS],
    ids=["strange", "zeros", "one bad chunk", "no channels"],
)
def test_unreadable_file_that_may_hold_a_chunk_is_kept(part: Path, data: bytes) -> None:
    part.write_bytes(data)
    with pytest.raises(OSError, match="no data in it can be read"):
        seal(part)
    assert part.read_bytes() == data
    assert [one.name for one in part.parent.iterdir()] == [part.name]


@pytest.mark.parametrize("data", [OPEN, WHOLE])
def test_existing_sealed_file_is_not_replaced(part: Path, data: bytes) -> None:
    part.write_bytes(data)
    part.with_name(NAME).write_text("somebody's")
    with pytest.raises(FileExistsError):
        seal(part)
    assert part.read_bytes() == data
    assert part.with_name(NAME).read_text() == "somebody's"


# --- a moment at a time ---


class Work:
    """Seal that costs 10 ms per step, on a clock of its own."""

    def __init__(self, steps: int, fault: Exception | None = None) -> None:
        self.now_ns, self.steps, self.fault = 0, steps, fault
        self.begun: list[str] = []
        self.ended: list[str] = []

    def __call__(self, name: str) -> Iterator[None]:
        self.begun.append(name)
        with contextlib.ExitStack() as stack:
            stack.callback(self.ended.append, name)
            for _ in range(self.steps):
                self.now_ns += 10 * MS
                yield
            if self.fault is not None and name == "bad":
                raise self.fault


def salvager(work: Work) -> Salvager:
    return Salvager(work, lambda: work.now_ns)


def test_salvage_works_in_slices_of_100_ms_and_resumes() -> None:
    work, names = Work(25), ["a", "b"]
    one, turns = salvager(work), list[int]()
    while work.ended != ["a", "b"]:
        before = work.now_ns
        one.advance(names)
        turns.append(work.now_ns - before)
    assert turns == [100 * MS] * 5 + [0]
    assert names == [] and work.begun == ["a", "b"]
    one.advance(names)


@pytest.mark.parametrize(
    "fault", [OSError("no"), parsing.RecordError("no"), MemoryError(), KeyError(7)]
)
def test_fault_in_a_leftover_does_not_stop_the_others(
    fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    work = Work(1, fault)
    one = salvager(work)
    for names in (["bad", "good"], ["bad", "good"], ["bad", "new"]):
        one.advance(names)
        assert names == []
    assert work.begun == ["bad", "good", "new"], "none twice in a run"
    assert caplog.text.count("bad: left as it is") == 1


def test_dropped_work_is_closed_and_retried_three_times() -> None:
    work = Work(25)
    one = salvager(work)
    for tries in range(1, 5):
        one.advance(["a"])
        assert work.ended == ["a"] * (tries - 1)
        one.drop()
        assert work.ended == ["a"] * tries
    one.advance(["a", "b"])
    assert work.begun == [*["a"] * 4, "b"]
    one.drop()
    one.drop()
    one.advance(["b"])
    assert work.begun[-2:] == ["b", "b"], "each has its own tries"
