"""Reader of damaged files: whole messages are returned, and only those."""

import io
import os
import random
import struct
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from testkit.recorder.recording import UTC_NS, BytesSource, about, file, flipped, recording

from fpvcar.recordings import codec, messages, reader
from fpvcar.recordings.mcap import parsing, records
from fpvcar.recordings.mcap.chunks import Source
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.reader import Message, Recording
from fpvcar.recordings.repair import recover, verify
from fpvcar.runtime.units import SECOND_NS

CHUNKS = 6
WHOLE = file(CHUNKS)
OPEN = file(CHUNKS, closed=False)


def read(data: bytes) -> list[Message]:
    return list(recording(data).messages())


def by_chunk(data: bytes) -> list[list[Message]]:
    """Return the messages of each chunk: a second each."""
    seconds: dict[int, list[Message]] = {}
    for one in read(data):
        seconds.setdefault(one.log_ns // SECOND_NS, []).append(one)
    return list(seconds.values())


GOOD = by_chunk(WHOLE)
ALL = [one for chunk in GOOD for one in chunk]
SPANS = recording(WHOLE).chunks


def test_whole_file_is_read_completely() -> None:
    with recording(WHOLE) as made:
        assert made.whole and made.closed and not made.damage
        assert made.counts == {
            "/camera": 18,
            "/step": 18,
            "/range/front": 6,
            "/recording": 2,
            "/tf": 2,
            "/camera_info": 2,
        }
        assert made.about is not None
        assert made.about.car == about().car and made.about.segment == 1
        assert made.start_ns == UTC_NS
        assert made.end_ns == max(one.log_ns for one in ALL)
        assert len(made.chunks) == CHUNKS and sum(s.messages for s in made.chunks) == 48
    assert len(ALL) == 48


def test_topics_and_times_can_be_chosen() -> None:
    made = recording(WHOLE)
    pictures = list(made.messages([messages.CAMERA]))
    assert len(pictures) == 18
    assert {one.topic for one in pictures} == {"/camera"}
    picture = codec.decode("/camera", pictures[4].data)
    assert isinstance(picture, messages.Picture)
    assert picture.capture_ns == pictures[4].log_ns - 1000
    start, end = UTC_NS + SECOND_NS, UTC_NS + 3 * SECOND_NS - 1
    some = list(made.messages(start_ns=start, end_ns=end))
    assert some == [one for one in ALL if start <= one.log_ns <= end] != []
    assert list(made.messages([])) == []


def test_unclosed_file_is_read_to_its_end() -> None:
    made = recording(OPEN)
    assert not made.closed and not made.whole and not made.damage
    assert list(made.messages()) == ALL


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(OPEN) - 1))
def test_file_cut_anywhere_yields_all_whole_chunks(cut: int) -> None:
    ends = [span.at + span.length for span in recording(OPEN).chunks]
    whole = sum(end <= cut for end in ends)
    expected = [one for chunk in GOOD[:whole] for one in chunk]
    try:
        made = recording(OPEN[:cut])
    except RecordingError as fault:
        assert cut < 8 and str(fault)
        return
    assert list(made.messages()) == expected
    assert not made.closed
    if made.damage:
        assert made.damage[-1].reason.startswith("cut")
        assert made.damage[-1].at + made.damage[-1].length == cut


def check_flip(whole: bytes, at: int, mask: int) -> None:
    """Check that at most the chunk around the flip is lost, and the others are unchanged."""
    made = recording(flipped(whole, at, mask))
    found = list(made.messages())
    hit = [n for n, span in enumerate(SPANS) if span.at <= at < span.at + span.length]
    kept = [one for n, chunk in enumerate(GOOD) if n not in hit for one in chunk]
    assert found in (ALL, kept), f"byte {at}: {len(found)} of {len(ALL)}"
    if found != ALL:
        assert made.damage and not made.whole, "what is lost is said"
        lost = made.damage[0]
        assert lost.at <= at < lost.at + lost.length


@settings(max_examples=120, deadline=None)
@given(st.booleans(), st.integers(0, len(OPEN) - 1), st.integers(1, 255))
def test_flipped_byte_costs_at_most_its_chunk(closed: bool, at: int, mask: int) -> None:
    check_flip(WHOLE if closed else OPEN, at, mask)


def test_flipped_byte_in_head_or_index_costs_at_most_a_chunk() -> None:
    """The structure is a small part of a file; chance would seldom hit it."""
    dice = random.Random(5)
    first, second = SPANS[0], SPANS[1]
    places = [*range(40), *range(first.at - 9, first.at + 60)]
    places += range(first.at + first.length - 2, second.at + 60)
    places += range(second.at + second.length, second.at + second.length + 40)
    places += range(len(OPEN), len(OPEN) + 40)
    places += range(len(WHOLE) - 60, len(WHOLE))
    for at in places:
        check_flip(WHOLE, at, 1 << dice.randrange(8))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(OPEN)), st.binary(max_size=400), st.integers(0, 400))
def test_garbage_costs_only_the_chunks_it_covers(at: int, garbage: bytes, gone: int) -> None:
    data = OPEN[:at] + garbage + OPEN[at + gone :]
    hit = {
        n
        for n, span in enumerate(SPANS)
        if at < span.at + span.length and at + max(gone, 1) > span.at
    }
    try:
        found = list(recording(data).messages())
    except RecordingError:
        assert at < 8
        return
    kept = [one for n, chunk in enumerate(GOOD) if n not in hit for one in chunk]
    assert [one for one in found if one in ALL] == found
    assert len(found) >= len(kept)


def test_schemas_survive_the_loss_of_the_first_chunk() -> None:
    first = SPANS[0]
    made = recording(flipped(OPEN, first.at + 90, 1))
    assert made.about is not None and made.about.car == "Plague"
    assert list(made.messages()) == [one for chunk in GOOD[1:] for one in chunk]
    assert len(made.schemas) == len(recording(WHOLE).schemas)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"\x89PNG\r\n\x1a\n and so on", "no MCAP: begins with 89 50"),
        (b"7" * 3_000_000, "no MCAP"),
        (records.MAGIC[:5], "no MCAP"),
    ],
)
def test_file_that_is_no_recording_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(RecordingError, match=words):
        recording(data)


def test_head_without_a_chunk_is_an_empty_recording() -> None:
    made = recording(OPEN[: SPANS[0].at])
    assert not made.chunks and not made.damage and made.start_ns == made.end_ns == 0
    assert made.about is not None, "by the metadata"


def test_wrong_record_length_costs_only_its_chunk() -> None:
    at = SPANS[2].at
    huge = struct.pack("<Q", 2**63)
    for size in (huge, struct.pack("<Q", len(OPEN)), struct.pack("<Q", 0)):
        made = recording(OPEN[: at + 1] + size + OPEN[at + 9 :])
        kept = [one for n, chunk in enumerate(GOOD) if n != 2 for one in chunk]
        assert list(made.messages()) == kept


@pytest.mark.parametrize("data", [WHOLE, OPEN, OPEN[:-40]])
def test_recovered_files_are_whole(data: bytes) -> None:
    old = recording(data)
    clean = b"".join(recover.rewritten(old))
    made = recording(clean)
    assert made.whole and made.about == old.about
    assert list(verify.index_faults(made)) == []
    assert list(made.messages()) == list(old.messages())
    reader_of_theirs = make_reader(io.BytesIO(clean), validate_crcs=True)
    count = sum(1 for _ in reader_of_theirs.iter_messages())
    assert count == sum(old.counts.values())
    summary = reader_of_theirs.get_summary()
    assert summary is not None and summary.statistics is not None
    assert summary.statistics.message_count == count


def test_file_cut_while_read_yields_its_remaining_chunks(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    path.write_bytes(WHOLE)
    with reader.read(path) as made:
        path.write_bytes(WHOLE[: SPANS[3].at])
        assert list(made.messages()) == [one for chunk in GOOD[:3] for one in chunk]
    with pytest.raises(OSError):
        reader.read(tmp_path / "none.mcap")
    path.write_bytes(b"")
    with pytest.raises(RecordingError, match=r"a\.mcap: empty"):
        reader.read(path)


def test_bad_chunk_after_a_lost_length_is_skipped() -> None:
    bad = flipped(flipped(OPEN, SPANS[1].at + 2, 1), SPANS[2].at + 90, 1)
    kept = [one for n, chunk in enumerate(GOOD) if n not in (1, 2) for one in chunk]
    assert list(recording(bad).messages()) == kept
    lies = flipped(flipped(OPEN, SPANS[1].at + 2, 1), SPANS[2].at + 9 + 16, 1)
    assert list(recording(lies).messages()) == kept


def test_read_error_of_the_card_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object, at: int, size: int) -> bytes:
        raise OSError(5, "Input/output error")

    path = tmp_path / "a.mcap"
    path.write_bytes(WHOLE)
    monkeypatch.setattr(Source, "read", broken)
    with pytest.raises(OSError, match="Input/output"):
        reader.read(path)


class Shrinking(BytesSource):
    """File that is truncated while it is read."""

    def read(self, at: int, size: int) -> bytes:
        return super().read(at, size) if at < SPANS[2].at else b""


def test_pipe_or_folder_is_refused_as_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        with pytest.raises(OSError, match="not a file"):
            Source(path)


def test_file_that_shrinks_under_the_walk_ends_there() -> None:
    made = Recording(Shrinking(OPEN))
    assert len(made.chunks) == 2 and made.damage


def test_malformed_records_raise_damaged() -> None:
    for opcode, body in (
        (records.SCHEMA, b"\1\0"),
        (records.CHANNEL, b"\1\0\1\0\xff\0\0\0"),
        (records.MESSAGE_INDEX, b"\1\0\x05\0\0\0" + bytes(5)),
        (records.METADATA, b"\1\0\0\0\xff\0\0\0\0"),
        (records.FOOTER, b"1"),
        (records.DATA_END, b"123"),
        (records.ATTACHMENT, bytes(32) + b"\1\0\0\0"),
        (records.METADATA_INDEX, bytes(17)),
        (records.CHUNK_INDEX, bytes(30)),
        (records.STATISTICS, b""),
    ):
        with pytest.raises(parsing.RecordError):
            parsing.check(opcode, body)
    assert Counter(one.topic for one in ALL)["/recording"] == 2
