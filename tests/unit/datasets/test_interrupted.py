"""Interrupted export: no half dataset, and the same command continues it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from testkit.command import Command
from testkit.recorder import datasets

from fpvcar.datasets import export, lerobot
from fpvcar.datasets.part import opened
from fpvcar.recordings import reader
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.repair.damage import INCOMPLETE
from fpvcar.runtime import files

KINDS = ("lerobot", "donkey")


class Killed(BaseException):
    """Stands for a kill: no code of the export expects it."""


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """Make a folder with three drives."""
    folder = tmp_path / "card"
    folder.mkdir()
    for number in range(3):
        datasets.drive(folder, number, seconds=2.5)
    return folder


def damage(card: Path) -> None:
    """Flip a bit in the last chunk of the first drive."""
    path = min(card.iterdir())
    data = path.read_bytes()
    with reader.read(path) as recording:
        span = recording.chunks[-1]
    at = span.at + span.length // 2
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


def contents(out: Path) -> dict[str, bytes]:
    """Return the files of a dataset."""
    paths = sorted(path for path in out.rglob("*") if path.is_file())
    return {str(path.relative_to(out)): path.read_bytes() for path in paths}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_export_killed_at_any_write_is_continued(
    tmp_path: Path, card: Path, command: Command, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    events, killed_at = list[bool](), -1

    def watched(owner: Any, name: str, writes: bool) -> None:
        usual = getattr(owner, name)

        def call(*values: Any) -> Any:
            events.append(writes)
            if len(events) - 1 == killed_at:
                raise Killed
            return usual(*values)

        monkeypatch.setattr(owner, name, call)

    watched(files, "write_whole", True)
    watched(files, "publish", True)
    watched(export._Export, "_tell", False)  # called for each message and each picture
    damage(card)
    words = ("log", "export", f"--{kind}", out, card)
    command("log", "export", f"--{kind}", whole, card, status=INCOMPLETE)
    expected = contents(whole)
    assert "missing.txt" in expected
    points = [number for number, writes in enumerate(events) if writes]
    assert len(points) >= 5 and len(events) > 500
    for killed_at in sorted({*points, *range(50, len(events), len(events) // 6)}):
        events.clear()
        with pytest.raises(Killed):
            command(*words)
        assert not out.exists()
        events[:] = [False] * 100_000
        command(*words, status=INCOMPLETE)
        assert contents(out) == expected, killed_at
        assert not (tmp_path / "out.part").exists()
        shutil.rmtree(out)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_signal_leaves_a_part_that_is_continued(
    tmp_path: Path, card: Path, command: Command, number: signal.Signals
) -> None:
    for more in range(3, 12):
        datasets.drive(card, more, seconds=3.0)
    out, part = tmp_path / "out", tmp_path / "out.part"
    words = ["log", "export", "--lerobot", str(out), str(card)]
    with subprocess.Popen([sys.executable, "-m", "fpvcar", *words], process_group=0) as process:
        while not (part / "episodes" / "1.json").exists():
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(number)
        assert process.wait(30) == (130 if number == signal.SIGINT else -number)
    assert not out.exists()
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    said = command(*words)
    assert "continuing after" in said.err and "12 episodes" in said.out
    assert not part.exists()


def test_export_after_full_disk_is_continued(
    tmp_path: Path, card: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, usual, calls = tmp_path / "out", lerobot.write_episode, 0

    def full(*values: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            usual(*values)  # half of it may be written
            raise OSError(28, "No space left on device")
        return usual(*values)

    monkeypatch.setattr(lerobot, "write_episode", full)
    words = ("log", "export", "--lerobot", out, card)
    said = command(*words, status=1)
    assert "out.part is kept: the same command continues it" in said.err
    assert "make room" in said.err and not out.exists()
    assert "continuing after 1 episode" in command(*words).err
    assert out.exists()


def test_too_small_disk_is_refused_first(
    tmp_path: Path, card: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "PICTURE_BYTES_PER_PIXEL", 1e12)
    words = ("log", "export", "--lerobot", tmp_path / "out", "--size", "64x64", card)
    said = command(*words, status=1).err
    assert "needs up to" in said and f"MB are free in {tmp_path}: make room, or" in said
    assert list(tmp_path.iterdir()) == [card]


def test_part_of_another_export_is_refused(tmp_path: Path, card: Path, command: Command) -> None:
    out = tmp_path / "out"
    with opened(out, "other") as part:
        (part.path / "episodes/0.json").write_text("{}")
        said = command("log", "export", "--lerobot", out, card, status=1)
        assert "out.part is in use by another export" in said.err
        part.close()
        said = command("log", "export", "--lerobot", out, card, status=1)
        assert "was begun with other options or recordings" in said.err
        assert part.path.exists()
        part._lock = os.open(tmp_path, os.O_RDONLY)
        (part.path / "episodes/0.json").unlink()


def test_dataset_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="was created meanwhile"):
        with opened(tmp_path / "out", "request") as part:
            (tmp_path / "out").mkdir()
            part.publish()
    assert list((tmp_path / "out").iterdir()) == []


def test_estimate_of_the_size_grows_with_pixels_and_rate() -> None:
    settings = export.Settings("donkey")
    day = export.needed_bytes(settings, 10**9, 3600.0)
    assert 500e6 < day < 2e9, "an hour at 30 fps"
    assert export.needed_bytes(export.Settings("lerobot", copy=True), 10**9, 3600.0) == 2 * 10**9
