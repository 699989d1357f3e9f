"""`log verify` on parts without a chunk's CRC: metadata, data end, foreign files."""

from collections.abc import Callable
from pathlib import Path

import pytest
from testkit.command import Command
from testkit.recorder.foreign import theirs
from testkit.recorder.recording import file, flipped, recording, small_files

from fpvcar.recordings import messages
from fpvcar.recordings.mcap import records
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.repair import verify

VERIFIED = Callable[..., str]


@pytest.fixture
def verified(tmp_path: Path, command: Command) -> VERIFIED:
    """Return a function that runs `log verify` on these bytes, and returns its output."""

    def verify(data: bytes, status: int = 0) -> str:
        path = tmp_path / "some.mcap"
        path.write_bytes(data)
        return command("log", "verify", path, status=status).out

    return verify


def holds(data: bytes) -> bool:
    """Return True if verify reports the file as whole."""
    try:
        made = recording(data)
    except RecordingError:
        return False
    if not made.whole:
        return False
    return not [*verify.metadata_faults(made), *verify.index_faults(made)]


def test_flip_of_any_byte_behind_the_header_is_found() -> None:
    data = small_files()[0]
    head = len(records.MAGIC) + len(records.header("fpvcar 0"))
    assert holds(data) and len(data) < 10_000
    unseen = [at for at in range(head, len(data)) if holds(flipped(data, at, 4))]
    assert unseen == []


def test_chunk_missing_from_the_summary_is_reported() -> None:
    made = recording(small_files()[0])
    lines = [one for one in made.tail if one[0] == records.CHUNK_INDEX]
    assert len(lines) > 1 and not list(verify.index_faults(made))
    made.tail.remove(lines[0])
    (said,) = verify.index_faults(made)
    assert said == f"in the summary: {len(lines) - 1} of {len(lines)} chunks"


def test_metadata_that_contradicts_the_chunks_is_reported(verified: VERIFIED) -> None:
    data = file(3)
    verified(data)
    for text in (b"utc_offset_ns", b"Plague-20261121"):
        at = data.index(text)
        assert at < data.index(messages.ABOUT.encode()), "before the first chunk"
        said = verified(flipped(data, at, 1), 1)
        assert "its metadata differs from /recording" in said and "some checks fail" in said
        assert "fpvcar log recover" in said and "every CRC" not in said


@pytest.mark.parametrize(
    ("chunks", "crcs", "data_crc", "words"),
    [
        (True, False, False, "no CRC covers"),
        (True, True, False, "every CRC holds"),
        (True, True, True, "every CRC holds"),
        (True, False, True, "no CRC covers"),
        (False, True, False, "no CRC covers"),
        (False, False, True, "no CRC covers"),
    ],
)
def test_legal_foreign_file_is_whole_and_says_what_no_crc_covers(
    chunks: bool, crcs: bool, data_crc: bool, words: str, verified: VERIFIED
) -> None:
    data = theirs(use_chunking=chunks, enable_crcs=crcs, enable_data_crcs=data_crc)
    said = verified(data)
    assert words in said and "40 messages" in said
    if data_crc:
        said = verified(flipped(data, data.index(b"jsonschema"), 1), 1)
        assert "its data end has a wrong CRC" in said or "CRC is wrong" in said
    if chunks and crcs:
        assert "a chunk's CRC is wrong" in verified(flipped(data, data.index(b'{"head"'), 1), 1)
