"""Foreign and absurd files: read, summarised, recovered."""

import importlib
import io
import struct
from pathlib import Path
from unittest.mock import Mock

import pytest
from mcap.reader import make_reader
from mcap.writer import CompressionType
from mcap.writer import Writer as TheirWriter
from testkit.command import Command
from testkit.recorder.foreign import theirs
from testkit.recorder.recording import file, flipped, recording

from fpvcar.recordings import codec, messages, reader
from fpvcar.recordings.export.thumbnail import first_picture
from fpvcar.recordings.mcap import records, walk
from fpvcar.recordings.mcap.parsing import PackageMissing
from fpvcar.recordings.overview import overview_of
from fpvcar.recordings.repair import recover, verify


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.ZSTD])
def test_foreign_files_are_read(compression: CompressionType) -> None:
    data = theirs(compression)
    made = recording(data)
    assert made.whole and made.counts == {"/lights": 40} and made.about is None
    assert list(verify.index_faults(made)) == []
    assert [one.log_ns for one in made.messages()] == list(range(40))
    for span in made.chunks:
        broken = recording(flipped(data, span.at + 70, 4))
        assert broken.damage and sum(broken.counts.values()) == 30


@pytest.mark.parametrize(
    ("data", "words"),
    [(theirs(CompressionType.LZ4), "compressed by 'lz4' (expected zstd or none)")],
)
def test_unsupported_parts_of_a_file_are_named(data: bytes, words: str) -> None:
    made = recording(data)
    assert list(made.messages()) == [] and made.damage and made.closed
    assert all(words in one.reason for one in made.damage)


@pytest.mark.parametrize("repeat", [True, False])
def test_channels_of_one_topic_are_counted_together(repeat: bool, tmp_path: Path) -> None:
    path, out = tmp_path / "a.mcap", io.BytesIO()
    writer = TheirWriter(out, compression=CompressionType.NONE, repeat_channels=repeat)
    writer.start("", "someone else")
    for number in range(2):
        channel = writer.register_channel(messages.LIGHTS, "json", 0, {"number": str(number)})
        writer.add_message(channel, number, codec.encode(messages.Lights(True)), number)
    writer.finish()  # type: ignore[no-untyped-call]
    path.write_bytes(out.getvalue())
    with reader.read(path) as made:
        assert made.whole and made.counts == overview_of(path).counts == {"/lights": 2}


def test_empty_chunks_and_absent_summaries_are_no_damage() -> None:
    data = inserted(theirs(), records.DATA_END, raw_chunk())
    made = recording(data)
    assert made.whole and made.counts == {"/lights": 40} and made.tail == []
    assert list(verify.index_faults(made)) == []
    zeros = recording(inserted(data, records.DATA_END, raw_chunk(bytes(90))))
    assert [one.reason for one in zeros.damage] == ["a record of opcode 0"]
    zeros = recording(inserted(data, records.DATA_END, bytes(90)))
    assert [one.reason for one in zeros.damage][-1] == "unknown record 0x0 of 0 bytes"
    assert zeros.counts == made.counts


def test_chunk_whose_opcode_was_flipped_is_damage() -> None:
    data = theirs()
    made = recording(flipped(data, recording(data).chunks[1].at, 64))
    assert [one.reason for one in made.damage] == ["a chunk with the opcode 0x46"]
    assert made.counts == {"/lights": 30}


PRIVATE = records.record(0x80, b"hello")
LATER = records.record(0x33, b"of a later version")


def inserted(data: bytes, opcode: int, extra: bytes) -> bytes:
    """Return a file without summary, with a record before the first one of this opcode."""
    out, at, done = data[:8], 8, False
    while True:
        kind, size = records.HEAD.unpack_from(data, at)
        if kind == opcode and not done:
            out, done = out + extra, True
        out += data[at : at + 9 + size]
        at += 9 + size
        if kind == records.DATA_END:
            return out + records.record(records.FOOTER, bytes(20)) + records.MAGIC


@pytest.mark.parametrize("opcode", [records.CHUNK, records.MESSAGE_INDEX, records.DATA_END])
@pytest.mark.parametrize("extra", [PRIVATE, LATER, PRIVATE + LATER])
def test_unknown_records_are_skipped_and_cost_no_neighbour(opcode: int, extra: bytes) -> None:
    data = inserted(theirs(), opcode, extra)
    made = recording(data)
    assert made.whole and made.counts == {"/lights": 40}
    assert list(verify.index_faults(made)) == list(verify.metadata_faults(made)) == []
    assert sum(1 for _ in make_reader(io.BytesIO(data)).iter_messages()) == 40
    clean = recording(b"".join(recover.rewritten(made)))
    assert clean.whole and clean.counts == {"/lights": 40}


def test_unknown_fields_behind_the_known_ones_are_ignored() -> None:
    data, out, at = theirs(), bytearray(records.MAGIC), 8
    while True:
        kind, size = records.HEAD.unpack_from(data, at)
        more = (
            b"later"
            if kind in (records.HEADER, records.SCHEMA, records.CHANNEL, records.METADATA)
            else b""
        )
        out += records.record(kind, data[at + 9 : at + 9 + size] + more)
        at += 9 + size
        if kind == records.DATA_END:
            break
    out += records.record(records.FOOTER, bytes(20)) + records.MAGIC
    made = recording(bytes(out))
    assert made.whole and made.counts == {"/lights": 40}


def test_messages_outside_chunks_are_read_and_recovered() -> None:
    made = recording(theirs(use_chunking=False))
    assert (
        made.whole
        and made.unverified
        and [one.log_ns for one in made.messages()] == list(range(40))
    )
    clean = recording(b"".join(recover.rewritten(made)))
    assert clean.whole and not clean.unverified and clean.counts == {"/lights": 40}


def test_message_outside_chunks_is_damage_in_a_file_of_fpvcar() -> None:
    data = file(3)
    at = recording(data).chunks[1].at
    made = recording(data[:at] + records.message(1, 0, 0, 0, b"{}") + data[at:])
    assert [one.reason[:34] for one in made.damage] == ["a message outside of a chunk: no C"]


def test_missing_zstandard_package_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Command
) -> None:
    path, words = tmp_path / "a.mcap", "zstd, which the Python package zstandard reads"
    path.write_bytes(theirs(CompressionType.ZSTD))
    with monkeypatch.context() as blocked:
        blocked.setattr(importlib, "import_module", Mock(side_effect=ImportError))
        for verb in ("info", "verify", "recover"):
            said = command("log", verb, path, status=1)
            assert said.out == "" and said.err.count(words) == 1
        with pytest.raises(PackageMissing):
            first_picture(path)
    command("log", "verify", path)
    strange = theirs(CompressionType.ZSTD).replace(b"zstd", b"zstx")
    said_of_it = {one.reason for one in recording(strange).damage}
    assert any("compressed by 'zstx'" in one for one in said_of_it)


def test_compressed_chunk_with_a_wrong_size_is_refused() -> None:
    data = bytearray(theirs(CompressionType.ZSTD))
    at = recording(bytes(data)).chunks[1].at + 9 + 16
    for size in (2**40, 7, 100_000):
        data[at : at + 8] = struct.pack("<Q", size)
        made = recording(bytes(data))
        assert sum(made.counts.values()) == 30 and len(made.damage) == 1


def test_recovered_foreign_file_stays_compressed() -> None:
    data = theirs(CompressionType.ZSTD)
    broken = flipped(data, recording(data).chunks[1].at + 70, 4)
    clean = recording(b"".join(recover.rewritten(recording(broken))))
    assert clean.whole and clean.counts == {"/lights": 30}
    theirs_again = make_reader(io.BytesIO(b"".join(recover.rewritten(clean))))
    assert sum(1 for _ in theirs_again.iter_messages()) == 30


@pytest.mark.parametrize("data", [file(6), file(6, closed=False), theirs(CompressionType.ZSTD)])
def test_overview_equals_a_full_read(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    path.write_bytes(data)
    seen = overview_of(path)
    with reader.read(path) as made:
        assert seen.closed == made.closed and seen.about == made.about
        assert {k: n for k, n in seen.counts.items() if n} == dict(made.counts)
        assert (seen.start_ns, seen.end_ns) == (made.start_ns, made.end_ns)
        assert seen.size == path.stat().st_size


def raw_chunk(*inner: bytes) -> bytes:
    """Return a chunk with a valid CRC and any content."""
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
def test_chunk_not_made_of_records_is_dropped(inner: bytes, words: str) -> None:
    good = raw_chunk(LIGHTS, records.message(1, 1, 5, 5, b"{}"))
    bad = raw_chunk(LIGHTS, records.message(1, 2, 5, 5, b"{}"), inner)
    next_one = raw_chunk(LIGHTS, records.message(1, 3, 5, 5, b"{}"))
    made = recording(records.MAGIC + records.header("x") + good + bad + next_one)
    assert [one.sequence for one in made.messages()] == [1, 3]
    assert len(made.damage) == 1 and words in made.damage[0].reason
    assert made.counts == {"/lights": 2}


def test_oversized_chunk_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "CHUNK_MOST", 400)
    small = raw_chunk(LIGHTS, records.message(1, 1, 5, 5, b"{}"))
    large = raw_chunk(LIGHTS, records.message(1, 2, 5, 5, bytes(400)))
    next_one = raw_chunk(LIGHTS, records.message(1, 3, 5, 5, b"{}"))
    made = recording(records.MAGIC + records.header("x") + small + large + next_one)
    assert [one.sequence for one in made.messages()] == [1, 3]
    assert "expected <= 400" in made.damage[0].reason


def test_unknown_records_in_a_chunk_are_skipped() -> None:
    private = records.record(0x81, b"somebody's own")
    stray = records.message(9, 1, 5, 5, b"of no channel")
    known = records.message(1, 1, 5, 5, b"{}")
    chunk = raw_chunk(LIGHTS, private, stray, known)
    made = recording(records.MAGIC + records.header("x") + chunk)
    assert made.counts == {"/lights": 1} and not made.damage
    assert len(list(made.messages())) == 1 and made.chunks[0].messages == 2


def test_malformed_about_is_none() -> None:
    front = LIGHTS + records.channel(2, 1, messages.ABOUT, "json")
    chunk = raw_chunk(front, records.message(2, 0, 5, 5, b'{"car":7}'))
    texts = {"profile": "{", "car": "a"}
    head = records.MAGIC + records.header("x") + records.metadata("fpvcar", texts)
    assert recording(head + chunk).about is None


def closed(*groups: tuple[int, bytes], chunk: bytes = b"") -> bytes:
    """Return a file with that summary."""
    head = records.MAGIC + records.header("x") + chunk + records.data_end()
    return head + records.summary(len(head), groups)


def test_summary_is_used_only_if_valid(tmp_path: Path) -> None:
    chunk = raw_chunk(LIGHTS, records.message(1, 1, 5, 5, b"{}"))
    strange = (0x80, records.record(0x80, b"somebody's own"))
    odd = (records.SCHEMA, records.record(records.SCHEMA, b"\1"))
    path = tmp_path / "a.mcap"
    for groups, whole in (((), True), ((strange,), True), ((odd,), False)):
        data = closed(*groups, chunk=chunk)
        assert recording(data).closed == whole, groups
        path.write_bytes(data)
        seen = overview_of(path)  # without statistics the file has to be read
        assert seen.counts == {"/lights": 1} and seen.start_ns == 5


def test_empty_closed_file_is_recognised(tmp_path: Path) -> None:
    counts = records.Counts({}, 0, 0, 0, 0)
    path = tmp_path / "a.mcap"
    path.write_bytes(closed((records.STATISTICS, records.statistics(counts))))
    seen = overview_of(path)
    assert seen.closed and seen.counts == {} and seen.about is None
    chunk = raw_chunk(LIGHTS)
    empty = recording(closed(chunk=chunk))
    assert empty.start_ns == 0 and len(empty.chunks) == 1
    assert recording(b"".join(recover.rewritten(empty))).whole
