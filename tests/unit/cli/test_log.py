"""`fpvcar log` on files of a real folder."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import mcap.writer
import pytest
from testkit.recorder.recording import file, flipped, recording

from fpvcar import __main__, __version__
from fpvcar.cli import log
from fpvcar.library import summaries
from fpvcar.recorder.folder import Folder
from fpvcar.recordings import reader
from fpvcar.recordings.mcap import records
from fpvcar.recordings.repair import verify
from tests.unit.recorder.test_folder import NAME, record


def damaged(path: Path) -> Path:
    """Write a file with a flipped byte in its second chunk."""
    data = bytearray(file(5))
    path.write_bytes(data)
    with reader.read(path) as made:
        data[made.chunks[1].at + 100] ^= 1
    path.write_bytes(data)
    return path


def run(*words: str | Path) -> int:
    return __main__.main(["log", *map(str, words)])


def test_list_and_info_print_the_recordings_facts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, 7)
    assert run("list", tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and "2026-11-21 19:31:00 UTC" in lines[0]
    assert "15 pictures of 41 messages" in lines[0]
    assert run("info", tmp_path / NAME) == 0
    said = capsys.readouterr().out
    assert f"Plague, fpvcar {__version__}, recording Plague-20261121T193100Z, file 1" in said
    assert "/camera" in said and "closed" in said


def test_folder_is_listed_by_its_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path, 3)
    for number in range(20):
        (tmp_path / f"Plague-20261120T100000Z-{number:04d}.mcap").write_bytes(b"none")
    assert run("list", tmp_path) == 1
    first = capsys.readouterr()
    assert first.err.count("no MCAP: begins with") == 20 and "pictures" in first.out
    monkeypatch.delattr(summaries, "entry_of")  # the files are not read again
    assert run("list", tmp_path) == 1 and capsys.readouterr() == first


def test_verify_names_the_damage_and_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, 3)
    assert run("verify", tmp_path) == 0
    assert "whole: 3 chunks" in capsys.readouterr().out
    bad = damaged(tmp_path / "bad.mcap")
    assert run("verify", tmp_path / NAME, bad) == 1
    said = capsys.readouterr().out
    assert "CRC is wrong" in said and f"fpvcar log recover {bad}" in said
    open_file = tmp_path / "open.mcap"
    open_file.write_bytes(file(2, closed=False))
    assert run("verify", open_file) == 1
    assert "never closed, but nothing is damaged" in capsys.readouterr().out


def test_verify_accepts_a_file_being_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    live, recorder = tmp_path / f"{NAME}.part", Folder(tmp_path)
    live.write_bytes(file(2, closed=False))
    recorder.enter()
    assert run("verify", tmp_path) == 0
    assert "being recorded: so far 2 chunks" in capsys.readouterr().out
    whole = live.read_bytes()
    with reader.read(live) as made:
        live.write_bytes(flipped(whole, made.chunks[0].at + 100, 1))
    assert run("verify", tmp_path) == 1, "damage is damage"
    live.write_bytes(whole)
    recorder.leave()
    assert run("verify", tmp_path) == 1, "nobody will close it"
    assert "never closed" in capsys.readouterr().out


def test_verify_finds_wrong_chunk_indexes_and_recover_fixes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No CRC of the format covers the index, and other readers use it."""
    data, path = file(5), tmp_path / "astray.mcap"
    path.write_bytes(data)
    with reader.read(path) as made:
        assert list(verify.index_faults(made)) == []
        span = made.chunks[2]
    behind = span.at + span.length
    for at, words in (
        (behind + 9 + 6 + 8, "an index that is not of the chunk before it"),
        (behind + 9, "an index that is not of the chunk before it"),
        (span.at + 9 + 3, "a chunk's times are not those of its messages"),
    ):
        path.write_bytes(flipped(data, at, 4))
        assert run("verify", path) == 1
        said = capsys.readouterr().out
        assert "its indexes are wrong" in said and words in said
        assert f"fpvcar log recover {path}" in said
        assert run("recover", path) == 0
        assert run("verify", tmp_path / "astray.recovered.mcap") == 0
        (tmp_path / "astray.recovered.mcap").unlink()


def test_verify_finds_a_summary_of_another_file(tmp_path: Path) -> None:
    few, many = file(3), file(5)
    with recording(few) as made:
        (tmp_path / "few.mcap").write_bytes(few)
        lines = [body for opcode, body in made.tail if opcode == records.CHUNK_INDEX]
    with recording(many) as other:
        other.tail = [(records.CHUNK_INDEX, lines[0]), (records.CHUNK_INDEX, bytes(60))]
        said = list(verify.index_faults(other))
    assert said == ["in the summary: no such chunk at byte 0", "in the summary: 2 of 5 chunks"]


def test_kept_recording_is_listed_and_released(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, 7)
    kept = tmp_path / (NAME + ".keep")
    kept.touch()
    assert run("list", tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith("  kept") for line in lines] == [True, False]
    assert run("release", tmp_path) == 0 and not kept.exists()
    assert capsys.readouterr().out == f"{tmp_path / NAME}: released\n"
    assert run("release", tmp_path / "none.mcap") == 1
    assert "none.mcap: No such file" in capsys.readouterr().err
    assert (tmp_path / NAME).exists()


def test_recover_writes_a_clean_file_and_replaces_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = damaged(tmp_path / "bad.mcap")
    assert run("recover", bad) == 0
    clean = tmp_path / "bad.recovered.mcap"
    with reader.read(clean) as made, reader.read(bad) as old:
        assert made.whole and dict(made.counts) == dict(old.counts)
    assert run("verify", clean) == 0
    assert run("recover", bad) == 1
    assert "already exists" in capsys.readouterr().err
    out = tmp_path / "out"
    assert run("recover", bad, "--out", out) == 2
    assert "expected a folder" in capsys.readouterr().err
    out.mkdir()
    assert run("recover", bad, "--out", out) == 0
    assert (out / "bad.recovered.mcap").exists()


def test_log_names_files_that_it_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "a.png"
    other.write_bytes(b"\x89PNG\r\n\x1a\n")
    for what in ("list", "info", "verify", "recover"):
        assert run(what, other, tmp_path / "none.mcap") == 1
        said = capsys.readouterr().err
        assert "a.png: no MCAP" in said and "none.mcap: No such file" in said
    empty = tmp_path / "empty.mcap"
    empty.write_bytes(file(1)[:1800])
    assert run("recover", empty) in (0, 1)
    assert run("list", tmp_path / "out") == 1
    (tmp_path / "out").mkdir()
    capsys.readouterr()
    assert run("list", tmp_path / "out") == 0
    assert "no recordings in it" in capsys.readouterr().err
    with contextlib.suppress(SystemExit):
        assert run("destroy", other) == 2


def test_info_of_a_foreign_mcap_has_no_car(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.mcap"
    out = path.open("wb")
    theirs = mcap.writer.Writer(out)
    theirs.start()
    theirs.add_message(theirs.register_channel("/x", "json", 0), 1, b"{}", 1)
    theirs.finish()  # type: ignore[no-untyped-call]
    out.close()
    assert run("info", path) == 0
    said = capsys.readouterr().out
    assert "not written by fpvcar" in said and "/x" in said


def test_verify_sums_up_many_damages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray(file(60))
    path = tmp_path / "worn.mcap"
    path.write_bytes(data)
    with reader.read(path) as made:
        for span in made.chunks[::2]:
            data[span.at + 100] ^= 1
    path.write_bytes(data)
    assert run("verify", path) == 1
    assert f"and {30 - log.DAMAGE_SHOWN} more places" in capsys.readouterr().out


def test_recover_does_not_follow_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "bad.recovered.mcap").symlink_to(tmp_path / "precious")
    assert run("recover", damaged(tmp_path / "bad.mcap")) == 1
    assert (tmp_path / "precious").read_text() == "mine"


def test_verify_refuses_a_pipe_without_waiting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe.mcap")
    assert run("verify", tmp_path / "pipe.mcap") == 1
    assert "pipe.mcap: not a file" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("log", "info"), ("replay",)])
def test_closed_output_pipe_ends_the_verb_quietly(tmp_path: Path, words: tuple[str, ...]) -> None:
    record(tmp_path, 3)
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
