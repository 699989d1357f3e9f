"""Whatever happened to a file: what is whole in it comes out, and nothing else does."""

import importlib
import io
import random
import struct
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.writer import CompressionType
from mcap.writer import Writer as TheirWriter

from fpvcar.recording import format, indexes, parsing, reader, records, recover, walk
from fpvcar.recording.chunks import BytesSource, FileSource
from fpvcar.recording.glance import glance
from fpvcar.recording.reader import Message, ReadError, Recording
from tests.recording_rig import SECOND_NS, UTC_NS, about, file

CHUNKS = 6
WHOLE = file(CHUNKS)
OPEN = file(CHUNKS, closed=False)


def recording(data: bytes) -> Recording:
    return Recording(BytesSource(data))


def messages(data: bytes) -> list[Message]:
    return list(recording(data).messages())


def by_chunk(data: bytes) -> list[list[Message]]:
    """The messages of each chunk: a second each."""
    seconds: dict[int, list[Message]] = {}
    for one in messages(data):
        seconds.setdefault(one.log_ns // SECOND_NS, []).append(one)
    return list(seconds.values())


GOOD = by_chunk(WHOLE)
ALL = [one for chunk in GOOD for one in chunk]
SPANS = recording(WHOLE).chunks


def test_a_whole_file_is_read_whole() -> None:
    with recording(WHOLE) as made:
        assert made.whole and made.closed and not made.damage
        assert made.counts == {"/camera": 18, "/step": 18, "/range/front": 6,
                               "/recording": 2}  # fmt: skip
        assert made.about is not None
        assert made.about.car == about().car and made.about.segment == 1
        assert made.start_ns == UTC_NS
        assert made.end_ns == max(one.log_ns for one in ALL)
        assert len(made.chunks) == CHUNKS and sum(s.messages for s in made.chunks) == 44
    assert len(ALL) == 44


def test_topics_and_times_can_be_chosen() -> None:
    made = recording(WHOLE)
    pictures = list(made.messages([format.CAMERA]))
    assert len(pictures) == 18
    assert {one.topic for one in pictures} == {"/camera"}
    picture = format.decode("/camera", pictures[4].data)
    assert isinstance(picture, format.Picture)
    assert picture.capture_ns == pictures[4].log_ns - 1000
    start, end = UTC_NS + SECOND_NS, UTC_NS + 3 * SECOND_NS - 1
    some = list(made.messages(start_ns=start, end_ns=end))
    assert some == [one for one in ALL if start <= one.log_ns <= end] != []
    assert list(made.messages([])) == []


def test_a_file_that_was_never_closed_is_read_to_its_end() -> None:
    made = recording(OPEN)
    assert not made.closed and not made.whole and not made.damage
    assert list(made.messages()) == ALL


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(OPEN) - 1))
def test_a_file_cut_anywhere_yields_all_whole_chunks(cut: int) -> None:
    ends = [span.at + span.length for span in recording(OPEN).chunks]
    whole = sum(end <= cut for end in ends)
    expected = [one for chunk in GOOD[:whole] for one in chunk]
    try:
        made = recording(OPEN[:cut])
    except ReadError as fault:
        assert cut < 8 and str(fault)
        return
    assert list(made.messages()) == expected
    assert not made.closed
    if made.damage:
        assert made.damage[-1].what.startswith("cut")
        assert made.damage[-1].at + made.damage[-1].length == cut


def flipped(data: bytes, at: int, mask: int) -> bytes:
    """One byte is another."""
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


def check_flip(whole: bytes, at: int, mask: int) -> None:
    """At most the chunk around it is lost, and what comes out is what went in."""
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
def test_one_flipped_byte_costs_one_chunk(closed: bool, at: int, mask: int) -> None:
    check_flip(WHOLE if closed else OPEN, at, mask)


def test_every_byte_of_a_head_and_an_index_may_flip() -> None:
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
def test_garbage_in_the_middle_costs_what_it_covers(
    at: int, garbage: bytes, gone: int
) -> None:
    data = OPEN[:at] + garbage + OPEN[at + gone :]
    hit = {
        n
        for n, span in enumerate(SPANS)
        if at < span.at + span.length and at + max(gone, 1) > span.at
    }
    try:
        found = list(recording(data).messages())
    except ReadError:
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
def test_what_is_no_recording_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ReadError, match=words):
        recording(data)


def test_a_head_without_a_chunk_is_an_empty_recording() -> None:
    made = recording(OPEN[: SPANS[0].at])
    assert not made.chunks and not made.damage and made.start_ns == made.end_ns == 0
    assert made.about is not None, "by the metadata"


def test_lengths_that_lie_are_not_believed() -> None:
    at = SPANS[2].at
    huge = struct.pack("<Q", 2**63)
    for size in (huge, struct.pack("<Q", len(OPEN)), struct.pack("<Q", 0)):
        made = recording(OPEN[: at + 1] + size + OPEN[at + 9 :])
        kept = [one for n, chunk in enumerate(GOOD) if n != 2 for one in chunk]
        assert list(made.messages()) == kept


def theirs(compression: CompressionType, chunked: bool = True) -> bytes:
    """A file as the mcap library writes it."""
    out = io.BytesIO()
    writer = TheirWriter(out, compression=compression, use_chunking=chunked)
    writer.start("", "someone else")
    schema = writer.register_schema("fpvcar.Lights", "jsonschema", b"{}")
    channel = writer.register_channel(format.LIGHTS, "json", schema)
    for number in range(40):
        writer.add_message(channel, number, format.encode(format.Lights(True)), number)
        if number % 10 == 9 and chunked:
            writer.flush()  # type: ignore[no-untyped-call]
    writer.add_attachment(1, 2, "a", "text/plain", b"words")
    writer.add_metadata("somebody's", {"car": "Other"})
    writer.finish()  # type: ignore[no-untyped-call]
    return out.getvalue()


@pytest.mark.parametrize("compression", CompressionType)
def test_foreign_files_are_read(compression: CompressionType) -> None:
    data = theirs(compression)
    made = recording(data)
    assert made.whole and made.counts == {"/lights": 40} and made.about is None
    assert list(indexes.astray(made)) == []
    assert [one.log_ns for one in made.messages()] == list(range(40))
    for span in made.chunks:
        broken = recording(flipped(data, span.at + 70, 4))
        assert broken.damage and sum(broken.counts.values()) == 30
    loose = recording(theirs(compression, chunked=False))
    assert [one.log_ns for one in loose.messages()] == list(range(40))
    assert [one.log_ns for one in loose.messages(start_ns=30)] == list(range(30, 40))


def test_a_compression_that_is_not_there_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    data = theirs(CompressionType.ZSTD)
    monkeypatch.setattr(importlib, "import_module", absent)
    made = recording(data)
    assert {one.what for one in made.damage} == {"zstd: pip install zstandard"}
    strange = data.replace(b"zstd", b"zstx")
    words = {one.what for one in recording(strange).damage}
    assert "unknown compression 'zstx'" in words


def test_a_compressed_chunk_that_lies_about_its_size_is_refused() -> None:
    data = bytearray(theirs(CompressionType.LZ4))
    at = recording(bytes(data)).chunks[1].at + 9 + 16
    for size in (2**40, 7, 100_000):
        data[at : at + 8] = struct.pack("<Q", size)
        made = recording(bytes(data))
        assert sum(made.counts.values()) == 30 and len(made.damage) == 1


@pytest.mark.parametrize("data", [WHOLE, OPEN, OPEN[:-40]])
def test_recovered_files_are_whole(data: bytes) -> None:
    old = recording(data)
    clean = b"".join(recover.rewritten(old))
    made = recording(clean)
    assert made.whole and made.about == old.about
    assert list(indexes.astray(made)) == []
    assert list(made.messages()) == list(old.messages())
    reader_of_theirs = make_reader(io.BytesIO(clean), validate_crcs=True)
    count = sum(1 for _ in reader_of_theirs.iter_messages())
    assert count == sum(old.counts.values())
    summary = reader_of_theirs.get_summary()
    assert summary is not None and summary.statistics is not None
    assert summary.statistics.message_count == count


def test_a_recovered_foreign_file_stays_compressed() -> None:
    data = theirs(CompressionType.ZSTD)
    broken = flipped(data, recording(data).chunks[1].at + 70, 4)
    clean = recording(b"".join(recover.rewritten(recording(broken))))
    assert clean.whole and clean.counts == {"/lights": 30}
    theirs_again = make_reader(io.BytesIO(b"".join(recover.rewritten(clean))))
    assert sum(1 for _ in theirs_again.iter_messages()) == 30


@pytest.mark.parametrize("data", [WHOLE, OPEN, theirs(CompressionType.LZ4)])
def test_a_glance_says_what_a_reading_says(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    path.write_bytes(data)
    seen = glance(path)
    with reader.read(path) as made:
        assert seen.closed == made.closed and seen.about == made.about
        assert {k: n for k, n in seen.counts.items() if n} == dict(made.counts)
        assert (seen.start_ns, seen.end_ns) == (made.start_ns, made.end_ns)
        assert seen.size == path.stat().st_size


def test_a_file_that_is_cut_while_it_is_read_is_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    path.write_bytes(WHOLE)
    with reader.read(path) as made:
        path.write_bytes(WHOLE[: SPANS[3].at])
        assert list(made.messages()) == [one for chunk in GOOD[:3] for one in chunk]
    with pytest.raises(OSError):
        reader.read(tmp_path / "none.mcap")
    path.write_bytes(b"")
    with pytest.raises(ReadError, match=r"a\.mcap: empty"):
        reader.read(path)


def raw_chunk(*inner: bytes) -> bytes:
    """A chunk whose CRC holds, whatever is in it."""
    body = b"".join(inner)
    return records.chunk_head(5, 6, body) + body


LIGHTS = records.schema(1, "x", "", b"") + records.channel(1, 1, "/lights", "json")


@pytest.mark.parametrize(
    ("inner", "words"),
    [
        (b"\5\0\0", "3 bytes behind a chunk's last record"),
        (records.record(5, bytes(40))[:-1], "a record of 40 bytes where 39 are left"),
        (records.record(5, bytes(21)), "a message of 21 bytes"),
        (records.record(records.SCHEMA, b"\1"), "1 are left"),
        (records.record(records.CHANNEL, b""), "0 are left"),
    ],
)
def test_a_chunk_that_is_not_made_of_records_is_no_chunk(
    inner: bytes, words: str
) -> None:
    good = raw_chunk(LIGHTS, records.message(1, 1, 5, 5, b"{}"))
    bad = raw_chunk(LIGHTS, records.message(1, 2, 5, 5, b"{}"), inner)
    made = recording(records.MAGIC + records.header("x") + good + bad + good)
    assert [one.sequence for one in made.messages()] == [1, 1]
    assert len(made.damage) == 1 and words in made.damage[0].what
    assert made.counts == {"/lights": 2}


def test_a_chunk_that_is_too_large_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(walk, "CHUNK_MOST", 400)
    small = raw_chunk(LIGHTS, records.message(1, 1, 5, 5, b"{}"))
    large = raw_chunk(LIGHTS, records.message(1, 2, 5, 5, bytes(400)))
    made = recording(records.MAGIC + records.header("x") + small + large + small)
    assert [one.sequence for one in made.messages()] == [1, 1]
    assert "expected <= 400" in made.damage[0].what


def test_what_is_unknown_in_a_chunk_is_stepped_over() -> None:
    private = records.record(0x81, b"somebody's own")
    stray = records.message(9, 1, 5, 5, b"of no channel")
    known = records.message(1, 1, 5, 5, b"{}")
    chunk = raw_chunk(LIGHTS, private, stray, known)
    made = recording(records.MAGIC + records.header("x") + chunk)
    assert made.counts == {"/lights": 1} and not made.damage
    assert len(list(made.messages())) == 1 and made.chunks[0].messages == 2


def test_after_a_lost_length_a_bad_chunk_is_passed_too() -> None:
    bad = flipped(flipped(OPEN, SPANS[1].at + 2, 1), SPANS[2].at + 90, 1)
    kept = [one for n, chunk in enumerate(GOOD) if n not in (1, 2) for one in chunk]
    assert list(recording(bad).messages()) == kept
    lies = flipped(flipped(OPEN, SPANS[1].at + 2, 1), SPANS[2].at + 9 + 16, 1)
    assert list(recording(lies).messages()) == kept


def test_an_about_that_is_none_is_none() -> None:
    front = LIGHTS + records.channel(2, 1, format.ABOUT, "json")
    chunk = raw_chunk(front, records.message(2, 0, 5, 5, b'{"car":7}'))
    texts = {"profile": "{", "car": "a"}
    head = records.MAGIC + records.header("x") + records.metadata("fpvcar", texts)
    assert recording(head + chunk).about is None


def closed(*groups: tuple[int, bytes], chunk: bytes = b"") -> bytes:
    """A file with that summary."""
    head = records.MAGIC + records.header("x") + chunk + records.data_end()
    return head + records.summary(len(head), groups)


def test_a_summary_is_believed_if_it_is_one(tmp_path: Path) -> None:
    chunk = raw_chunk(LIGHTS, records.message(1, 1, 5, 5, b"{}"))
    strange = (0x80, records.record(0x80, b"somebody's own"))
    odd = (records.SCHEMA, records.record(records.SCHEMA, b"\1"))
    path = tmp_path / "a.mcap"
    for groups, whole in (((), True), ((strange,), True), ((odd,), False)):
        data = closed(*groups, chunk=chunk)
        assert recording(data).closed == whole, groups
        path.write_bytes(data)
        seen = glance(path)  # without statistics it has to be read
        assert seen.counts == {"/lights": 1} and seen.start_ns == 5


def test_an_empty_closed_file_is_seen_so(tmp_path: Path) -> None:
    counts = records.Counts({}, 0, 0, 0, 0)
    path = tmp_path / "a.mcap"
    path.write_bytes(closed((records.STATISTICS, records.statistics(counts))))
    seen = glance(path)
    assert seen.closed and seen.counts == {} and seen.about is None
    chunk = raw_chunk(LIGHTS)
    empty = recording(closed(chunk=chunk))
    assert empty.start_ns == 0 and len(empty.chunks) == 1
    assert recording(b"".join(recover.rewritten(empty))).whole


def test_a_card_that_fails_while_it_is_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: object, at: int, size: int) -> bytes:
        raise OSError(5, "Input/output error")

    path = tmp_path / "a.mcap"
    path.write_bytes(WHOLE)
    monkeypatch.setattr(FileSource, "read", broken)
    with pytest.raises(OSError, match="Input/output"):
        reader.read(path)


class Shrinking(BytesSource):
    """A file that somebody cuts while it is read."""

    def read(self, at: int, size: int) -> bytes:
        return super().read(at, size) if at < SPANS[2].at else b""


def test_a_file_that_shrinks_under_the_walk_ends_there() -> None:
    made = Recording(Shrinking(OPEN))
    assert len(made.chunks) == 2 and made.damage


def test_records_say_what_is_wrong_with_them() -> None:
    for opcode, body in (
        (records.SCHEMA, b"\1\0"),
        (records.CHANNEL, b"\1\0\1\0\xff\0\0\0"),
        (records.MESSAGE_INDEX, b"\1\0\x05\0\0\0" + bytes(5)),
        (records.METADATA, b"\1\0\0\0\xff\0\0\0\0"),
        (records.FOOTER, b"1"),
        (records.DATA_END, b"12345"),
        (records.ATTACHMENT, bytes(32) + b"\1\0\0\0"),
        (records.CHUNK_INDEX, bytes(80)),
        (records.STATISTICS, b""),
    ):
        with pytest.raises(parsing.Damaged):
            parsing.check(opcode, body)
    assert Counter(one.topic for one in ALL)["/recording"] == 2
