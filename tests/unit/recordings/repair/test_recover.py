"""Recovered copy of a damaged file, as our reader and the mcap library read it."""

import io
import struct
from pathlib import Path

import pytest
from mcap.reader import McapReader, make_reader
from mcap.writer import Writer
from testkit.recorder.recording import BytesSource, damaged, file, flipped, recording

from fpvcar.recordings import messages
from fpvcar.recordings.mcap import records
from fpvcar.recordings.mcap.records import Counts
from fpvcar.recordings.reader import Recording
from fpvcar.recordings.repair import recover, salvage

CHUNKS = 6
OPEN = file(CHUNKS, closed=False)
SPANS = recording(OPEN).chunks


def recovered(data: bytes) -> bytes:
    return b"".join(recover.rewritten(recording(data)))


def foreign(data: bytes) -> McapReader:
    return make_reader(io.BytesIO(data), validate_crcs=True)


@pytest.mark.parametrize("bad", [(), (0,), (2, CHUNKS - 1)], ids=["open", "first", "others"])
def test_copy_is_whole_and_has_every_message_of_the_good_chunks(bad: tuple[int, ...]) -> None:
    source = recording(damaged(OPEN, *bad))
    clean = recovered(damaged(OPEN, *bad))
    assert recording(clean).whole
    kept = list(source.messages())
    assert list(recording(clean).messages()) == kept
    by_index = foreign(clean).iter_messages(log_time_order=False)
    theirs = [(message.log_time, message.data) for _, _, message in by_index]
    assert theirs == [(message.log_ns, message.data) for message in kept]
    summary = foreign(clean).get_summary()
    assert summary is not None and summary.statistics is not None
    assert len(summary.chunk_indexes) == summary.statistics.chunk_count == CHUNKS - len(bad)
    counts = summary.statistics.channel_message_counts
    assert {summary.channels[number].topic: count for number, count in counts.items() if count} == (
        source.counts
    )
    times = [message.log_ns for message in kept]
    assert summary.statistics.metadata_count == 1
    assert summary.statistics.message_start_time == min(times)
    assert summary.statistics.message_end_time == max(times)


def test_copy_has_its_metadata_where_the_summary_says() -> None:
    reader = foreign(recovered(OPEN))
    assert reader.get_header().library == "fpvcar recover"
    (metadata,) = reader.iter_metadata()
    assert metadata.name == messages.METADATA
    assert recording(recovered(OPEN)).metadata == metadata.metadata == recording(OPEN).metadata


def test_copy_has_its_channels_before_the_first_chunk() -> None:
    clean = recovered(damaged(OPEN, 0))
    torn = damaged(clean, 0, 1)[: clean.rindex(records.data_end())]
    left = list(recording(torn).messages())
    assert left and left == list(recording(OPEN).messages(start_ns=SPANS[3].start_ns))


def test_copy_of_another_writers_file_has_its_messages_in_chunks() -> None:
    out = io.BytesIO()
    writer = Writer(out, use_chunking=False)
    writer.start()
    channel = writer.register_channel("/odd", "json", writer.register_schema("odd", "", b""))
    for number in range(9):
        writer.add_message(channel, number, b"{}", number, number)
    writer.finish()  # type: ignore[no-untyped-call]
    source = recording(out.getvalue())
    assert source.unverified and source.about is None
    clean = recovered(out.getvalue())
    copy = recording(clean)
    assert copy.whole and not copy.unverified and not copy.metadata
    assert list(copy.messages()) == list(source.messages()) and len(copy.chunks) == 1
    assert list(foreign(clean).iter_metadata()) == []
    summary = foreign(clean).get_summary()
    assert summary is not None and summary.statistics is not None
    assert summary.statistics.metadata_count == 0


def test_existing_file_is_not_replaced_by_a_copy(tmp_path: Path) -> None:
    target = tmp_path / "clean.mcap"
    assert salvage.write_clean(recording(OPEN), target) == target.stat().st_size > 0
    before = target.read_bytes()
    with pytest.raises(FileExistsError):
        salvage.write_clean(recording(damaged(OPEN, 0)), target)
    assert target.read_bytes() == before == recovered(OPEN)


class Failing(BytesSource):
    """Card that reads a chunk well once, and then fails."""

    def __init__(self, data: bytes, at: int) -> None:
        super().__init__(data)
        self.bad = (at, flipped(data, at + 200, 0x10))
        self.good = True

    def read(self, at: int, size: int) -> bytes:
        if at == self.bad[0] and not self.good:
            return self.bad[1][at : at + size]
        return super().read(at, size)


def test_chunk_that_turns_bad_is_left_out_of_the_copy() -> None:
    source = Failing(OPEN, SPANS[2].at)
    made = Recording(source)
    source.good = False
    clean = recording(b"".join(recover.rewritten(made)))
    assert clean.whole and len(clean.chunks) == CHUNKS - 1
    assert list(clean.messages()) == list(made.messages())


def test_chunk_is_indexed_by_channels_above_255() -> None:
    found = [struct.pack("<HIQQ", number, 0, log_ns, 0) for number, log_ns in ((300, 5), (44, 7))]
    inner = b"".join(records.record(records.MESSAGE, message) for message in found)
    body = (records.chunk_head(5, 7, inner) + inner)[records.HEAD.size :]
    assert recover._chunk(0, body, memoryview(inner)).counts == {300: 1, 44: 1}


def test_summary_without_chunks_has_no_times() -> None:
    assert records.statistics(Counts({}, 0, 0, 0, 0, 0)) in recover._Summary().ending(0)
