"""Missing or duplicate parts of a file: reported by topic and time, and dropped."""

from pathlib import Path

import pytest
from testkit import mcaps
from testkit.mcaps import Drive, McapFile

from fpvcar import __main__
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


def log(what: str, path: Path) -> int:
    return __main__.main(["log", what, str(path)])


def test_removed_chunk_is_reported_by_topic_and_time(
    mcap_file: McapFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pieces = mcap_file.chunks()
    path = written(tmp_path / "a.mcap", pieces[:4] + pieces[5:])
    assert log("verify", path) == 1
    said = capsys.readouterr().out
    assert "never closed" not in said and "messages are missing" in said
    assert "/range/front: 10 messages are missing from 2025-11-21T20:00:02.9" in said
    assert "/battery: 10 messages" in said and "/step: " in said
    assert log("info", path) == 0
    assert "its summary does not hold" in capsys.readouterr().out
    assert log("recover", path) == 0
    assert "/range/front: 10 messages are missing from" in capsys.readouterr().out
    clean = tmp_path / "a.recovered.mcap"
    assert log("verify", clean) == 1, "its bytes are well, but not all are there"
    said = capsys.readouterr().out
    assert "/battery: 10 messages are missing" in said
    assert "log recover" not in said


@pytest.mark.parametrize("number", [1, SECONDS])
def test_removed_first_or_last_chunk_is_reported(
    mcap_file: McapFile, number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pieces = mcap_file.chunks()
    path = written(tmp_path / "a.mcap", pieces[:number] + pieces[number + 1 :])
    assert log("verify", path) == 1
    words = "/range/front: 10 messages are missing at the beginning or the end"
    assert words in capsys.readouterr().out


def test_damaged_summary_is_reported(
    mcap_file: McapFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, pieces = tmp_path / "a.mcap", mcap_file.chunks()
    for at in (40, len(pieces[-1]) // 2, len(pieces[-1]) - 20):
        path = mcaps.flipped(path, pieces, len(pieces) - 1)
        end = bytearray(pieces[-1])
        end[at] ^= 1
        written(path, [*pieces[:-1], bytes(end)])
        assert log("verify", path) == 1
        said = capsys.readouterr().out
        assert "never closed" not in said and "missing" not in said
        assert "summary does not hold" in said or "bytes cannot be used" in said


def test_duplicate_chunk_counts_once(
    mcap_file: McapFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pieces = mcap_file.chunks()
    whole = written(tmp_path / "whole.mcap", pieces)
    twice = written(tmp_path / "twice.mcap", [*pieces[:5], pieces[4], *pieces[5:]])
    assert log("verify", twice) == 1
    said = capsys.readouterr().out
    assert "a copy of an earlier chunk" in said and "missing" not in said
    assert __main__.main(["replay", str(twice)]) == 0
    assert "all as recorded" in capsys.readouterr().out
    assert log("recover", twice) == 0
    clean = tmp_path / "twice.recovered.mcap"
    assert log("verify", clean) == 0
    with reader.read(whole) as one, reader.read(clean) as other:
        assert list(one.messages()) == list(other.messages())


def test_gaps_above_the_limit_are_summarised(
    mcap_file: McapFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pieces = mcap_file.chunks()
    few = [piece for n, piece in enumerate(pieces) if n % 2 or n == len(pieces) - 1]
    path = written(tmp_path / "a.mcap", [pieces[0], *few])
    assert log("verify", path) == 1
    whole = capsys.readouterr().out.count("messages are missing from")
    assert whole >= 12
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("fpvcar.cli.log.DAMAGE_SHOWN", 2)
        assert log("verify", path) == 1
    assert "more gaps" in capsys.readouterr().out
