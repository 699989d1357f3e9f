"""`fpvcar log` on files of a real folder."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.command import Command
from testkit.recorder.foreign import theirs
from testkit.recorder.recording import damaged, file, flipped, recorded, recording

from fpvcar import __version__
from fpvcar.cli import log
from fpvcar.library import summaries
from fpvcar.recorder.folder import Folder
from fpvcar.recordings import reader
from fpvcar.recordings.mcap import records
from fpvcar.recordings.repair import verify
from tests.unit.recorder.test_folder import CONFIG, NAME


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """Make a file with a flipped byte in its second chunk."""
    path = tmp_path / "bad.mcap"
    path.write_bytes(damaged(file(5), 1))
    return path


def test_list_and_info_print_the_recordings_facts(tmp_path: Path, command: Command) -> None:
    recorded(Folder(tmp_path), 7, CONFIG).close()
    lines = command("log", "list", tmp_path).out.splitlines()
    assert len(lines) == 2 and "2026-11-21 19:31:00 UTC" in lines[0]
    assert "15 pictures of 41 messages" in lines[0]
    said = command("log", "info", tmp_path / NAME).out
    assert f"Plague, fpvcar {__version__}, recording Plague-20261121T193100Z, file 1" in said
    assert "/camera" in said and "closed" in said


def test_folder_is_listed_by_its_index(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(Folder(tmp_path), 3, CONFIG).close()
    for number in range(20):
        (tmp_path / f"Plague-20261120T100000Z-{number:04d}.mcap").write_bytes(b"none")
    first = command("log", "list", tmp_path, status=1)
    assert first.err.count("no MCAP: begins with") == 20 and "pictures" in first.out
    monkeypatch.delattr(summaries, "entry_of")  # the files are not read again
    assert command("log", "list", tmp_path, status=1) == first


def test_verify_names_the_damage_and_the_next_step(
    tmp_path: Path, bad: Path, command: Command
) -> None:
    recorded(Folder(tmp_path), 3, CONFIG).close()
    assert "whole: 3 chunks" in command("log", "verify", tmp_path / NAME).out
    said = command("log", "verify", tmp_path / NAME, bad, status=1).out
    assert "CRC is wrong" in said and f"fpvcar log recover {bad}" in said
    open_file = tmp_path / "open.mcap"
    open_file.write_bytes(file(2, closed=False))
    said = command("log", "verify", open_file, status=1).out
    assert "never closed, but nothing is damaged" in said


def test_verify_accepts_a_file_being_recorded(tmp_path: Path, command: Command) -> None:
    live, recorder = tmp_path / f"{NAME}.part", Folder(tmp_path)
    whole = file(2, closed=False)
    live.write_bytes(whole)
    recorder.enter()
    assert "being recorded: so far 2 chunks" in command("log", "verify", tmp_path).out
    live.write_bytes(damaged(whole, 0))
    command("log", "verify", tmp_path, status=1)  # damage is damage
    live.write_bytes(whole)
    recorder.leave()
    said = command("log", "verify", tmp_path, status=1).out
    assert "never closed" in said, "nobody will close it"


def test_verify_finds_wrong_chunk_indexes_and_recover_fixes(
    tmp_path: Path, command: Command
) -> None:
    """No CRC of the format covers the index, and other readers use it."""
    data, path = file(5), tmp_path / "astray.mcap"
    made = recording(data)
    assert list(verify.index_faults(made)) == []
    span = made.chunks[2]
    behind = span.at + span.length
    for at, words in (
        (behind + 9 + 6 + 8, "an index that is not of the chunk before it"),
        (behind + 9, "an index that is not of the chunk before it"),
        (span.at + 9 + 3, "a chunk's times are not those of its messages"),
    ):
        path.write_bytes(flipped(data, at, 4))
        said = command("log", "verify", path, status=1).out
        assert "its indexes are wrong" in said and words in said
        assert f"fpvcar log recover {path}" in said
        command("log", "recover", path)
        command("log", "verify", tmp_path / "astray.recovered.mcap")
        (tmp_path / "astray.recovered.mcap").unlink()


def test_verify_finds_a_summary_of_another_file() -> None:
    lines = [body for opcode, body in recording(file(3)).tail if opcode == records.CHUNK_INDEX]
    other = recording(file(5))
    other.tail = [(records.CHUNK_INDEX, lines[0]), (records.CHUNK_INDEX, bytes(60))]
    said = list(verify.index_faults(other))
    assert said == ["in the summary: no such chunk at byte 0", "in the summary: 2 of 5 chunks"]


def test_kept_recording_is_listed_and_released(tmp_path: Path, command: Command) -> None:
    recorded(Folder(tmp_path), 7, CONFIG).close()
    kept = tmp_path / (NAME + ".keep")
    kept.touch()
    lines = command("log", "list", tmp_path).out.splitlines()
    assert [line.endswith("  kept") for line in lines] == [True, False]
    assert command("log", "release", tmp_path).out == f"{tmp_path / NAME}: released\n"
    assert not kept.exists() and (tmp_path / NAME).exists()
    said = command("log", "release", tmp_path / "none.mcap", status=1).err
    assert "none.mcap: No such file" in said


def test_recover_writes_a_clean_file_and_replaces_no_file(
    tmp_path: Path, bad: Path, command: Command
) -> None:
    command("log", "recover", bad)
    clean = tmp_path / "bad.recovered.mcap"
    with reader.read(clean) as made, reader.read(bad) as old:
        assert made.whole and dict(made.counts) == dict(old.counts)
    command("log", "verify", clean)
    assert "already exists" in command("log", "recover", bad, status=1).err
    out = tmp_path / "out"
    assert "expected a folder" in command("log", "recover", bad, "--out", out, status=2).err
    out.mkdir()
    command("log", "recover", bad, "--out", out)
    assert (out / "bad.recovered.mcap").exists()


@pytest.mark.parametrize("verb", ["list", "info", "verify", "recover"])
def test_log_names_files_that_it_refuses(verb: str, tmp_path: Path, command: Command) -> None:
    other = tmp_path / "a.png"
    other.write_bytes(b"\x89PNG\r\n\x1a\n")
    said = command("log", verb, other, tmp_path / "none.mcap", status=1).err
    assert "a.png: no MCAP" in said and "none.mcap: No such file" in said
    command("log", "destroy", other, status=2)


def test_log_of_a_folder_without_data_or_files(tmp_path: Path, command: Command) -> None:
    empty = tmp_path / "empty.mcap"
    empty.write_bytes(file(1)[:1800])
    assert "no usable message" in command("log", "recover", empty, status=1).err
    command("log", "list", tmp_path / "out", status=1)
    (tmp_path / "out").mkdir()
    assert "no recordings in it" in command("log", "list", tmp_path / "out").err


def test_info_of_a_foreign_mcap_has_no_car(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "other.mcap"
    path.write_bytes(theirs())
    said = command("log", "info", path).out
    assert "not written by fpvcar" in said and "/lights" in said


def test_verify_sums_up_many_damages(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "worn.mcap"
    path.write_bytes(damaged(file(60), *range(0, 60, 2)))
    said = command("log", "verify", path, status=1).out
    assert f"and {30 - log.DAMAGE_SHOWN} more places" in said


def test_recover_does_not_follow_a_symlink(tmp_path: Path, bad: Path, command: Command) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "bad.recovered.mcap").symlink_to(tmp_path / "precious")
    command("log", "recover", bad, status=1)
    assert (tmp_path / "precious").read_text() == "mine"


def test_verify_refuses_a_pipe_without_waiting(tmp_path: Path, command: Command) -> None:
    os.mkfifo(tmp_path / "pipe.mcap")
    said = command("log", "verify", tmp_path / "pipe.mcap", status=1).err
    assert "pipe.mcap: not a file" in said


@pytest.mark.parametrize("words", [("log", "info"), ("replay",)])
def test_closed_output_pipe_ends_the_verb_quietly(tmp_path: Path, words: tuple[str, ...]) -> None:
    recorded(Folder(tmp_path), 3, CONFIG).close()
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "fpvcar", *words, *[tmp_path / NAME] * 400],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 128 + signal.SIGPIPE and done.stderr == b""
