"""Missing or duplicate parts of a file: reported by topic and time, and dropped."""

from pathlib import Path

import pytest
from testkit import mcaps
from testkit.command import Command
from testkit.mcaps import Drive, McapFile
from testkit.recorder.recording import flipped

from fpvcar.recordings import reader

SECONDS = 8


@pytest.fixture
def mcap_file() -> McapFile:
    """Return a drive in a closed file: a head, a chunk per second, an end."""
    drive = Drive(2)
    steps = drive.go(float(SECONDS))
    said = [*mcaps.measured(1.0 * SECONDS), *mcaps.step_messages(steps)]
    return McapFile(said, profile=drive.profile)


def written(path: Path, pieces: list[bytes]) -> Path:
    path.write_bytes(b"".join(pieces))
    return path


def test_removed_chunk_is_reported_by_topic_and_time(
    mcap_file: McapFile, tmp_path: Path, command: Command
) -> None:
    pieces = mcap_file.chunks()
    path = written(tmp_path / "a.mcap", pieces[:4] + pieces[5:])
    said = command("log", "verify", path, status=1).out
    assert "never closed" not in said and "messages are missing" in said
    assert "/range/front: 10 messages are missing from 2025-11-21T20:00:02.9" in said
    assert "/battery: 10 messages" in said and "/step: " in said
    assert "its summary does not hold" in command("log", "info", path).out
    said = command("log", "recover", path).out
    assert "/range/front: 10 messages are missing from" in said
    said = command("log", "verify", tmp_path / "a.recovered.mcap", status=1).out
    assert "/battery: 10 messages are missing" in said, "its bytes are well"
    assert "log recover" not in said


@pytest.mark.parametrize("number", [1, SECONDS])
def test_removed_first_or_last_chunk_is_reported(
    mcap_file: McapFile, number: int, tmp_path: Path, command: Command
) -> None:
    pieces = mcap_file.chunks()
    path = written(tmp_path / "a.mcap", pieces[:number] + pieces[number + 1 :])
    words = "/range/front: 10 messages are missing at the beginning or the end"
    assert words in command("log", "verify", path, status=1).out


def test_damaged_summary_is_reported(mcap_file: McapFile, tmp_path: Path, command: Command) -> None:
    *pieces, summary = mcap_file.chunks()
    for at in (40, len(summary) // 2, len(summary) - 20):
        path = written(tmp_path / "a.mcap", [*pieces, flipped(summary, at, 1)])
        said = command("log", "verify", path, status=1).out
        assert "never closed" not in said and "missing" not in said
        assert "summary does not hold" in said or "bytes cannot be used" in said


def test_duplicate_chunk_counts_once(mcap_file: McapFile, tmp_path: Path, command: Command) -> None:
    pieces = mcap_file.chunks()
    whole = written(tmp_path / "whole.mcap", pieces)
    twice = written(tmp_path / "twice.mcap", [*pieces[:5], pieces[4], *pieces[5:]])
    said = command("log", "verify", twice, status=1).out
    assert "a copy of an earlier chunk" in said and "missing" not in said
    assert "all as recorded" in command("replay", twice).out
    command("log", "recover", twice)
    clean = tmp_path / "twice.recovered.mcap"
    command("log", "verify", clean)
    with reader.read(whole) as one, reader.read(clean) as other:
        assert list(one.messages()) == list(other.messages())


def test_gaps_above_the_limit_are_summarised(
    mcap_file: McapFile, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, *pieces = mcap_file.chunks()
    path = written(tmp_path / "a.mcap", [head, *pieces[::2]])  # its end, too
    said = command("log", "verify", path, status=1).out
    assert said.count("messages are missing from") >= 12
    monkeypatch.setattr("fpvcar.cli.log.DAMAGE_SHOWN", 2)
    assert "more gaps" in command("log", "verify", path, status=1).out
