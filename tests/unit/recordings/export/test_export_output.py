"""Output of an export replaces nothing by accident."""

import os
import sys
from pathlib import Path

import pytest
from testkit import mcaps
from testkit.command import Command
from testkit.mcaps import McapFile
from testkit.recordings import drive_messages

from fpvcar.recordings.export import export
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.runtime import files
from tests.unit.recordings.export.test_export import film


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return McapFile(drive_messages()).to(tmp_path / "one.mcap")


def test_missing_library_error_names_the_install_command(
    tmp_path: Path, whole: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = command("export", "--parquet", tmp_path / "out", whole, status=1).err
    assert "needs pyarrow" in said and "pip install pyarrow" in said
    assert sorted(tmp_path.iterdir()) == [whole]


@pytest.mark.parametrize("kind", ["csv", "mp4"])
def test_existing_output_is_not_replaced_without_force(
    tmp_path: Path, whole: Path, command: Command, kind: str
) -> None:
    out = tmp_path / "out"
    if kind == "csv":
        out.mkdir()
        (out / "mine.txt").write_text("mine")
    else:
        out.write_text("mine")
    assert "exists: choose" in command("export", f"--{kind}", out, whole, status=1).err
    assert out.is_dir() or out.read_text() == "mine"
    command("export", f"--{kind}", out, "--force", whole)
    assert not (out / "mine.txt").exists() if kind == "csv" else film(out)
    assert sorted(tmp_path.iterdir()) == [whole, out], "no litter"


@pytest.mark.parametrize("folder", [False, True])
def test_publish_does_not_touch_other_files_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: bool
) -> None:
    os.mkfifo(tmp_path / "fifo")  # opening the FIFO would wait for its writer
    (tmp_path / "other").write_bytes(b"somebody else's")
    opened = list[Path]()
    monkeypatch.setattr(files, "sync", opened.append)
    with export.published(tmp_path / "out", force=False, folder=folder) as new:
        (new / "a.csv" if folder else new).write_bytes(b"film")
    inside = ["a.csv"] if folder else []
    assert [one.name for one in opened] == [*inside, "new", tmp_path.name]
    monkeypatch.undo()
    with export.published(tmp_path / "again", force=False, folder=folder) as new:
        (new / "a.csv" if folder else new).write_bytes(b"film")
    assert (tmp_path / "again").exists()


@pytest.mark.parametrize("folder", [False, True])
def test_output_that_appears_meanwhile_is_kept_beside_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: bool
) -> None:
    out, moved = tmp_path / "out", os.rename
    out.write_text("before")

    def rename(source: Path, target: Path) -> None:
        moved(source, target)
        monkeypatch.undo()
        out.write_text("somebody else's")

    monkeypatch.setattr(os, "rename", rename)
    said = "was created meanwhile: nothing was replaced; the previous output is "
    with (
        pytest.raises(RecordingError, match=said) as fault,
        export.published(out, force=True, folder=folder) as new,
    ):
        (new / "a.csv" if folder else new).write_text("mine")
    kept = Path(str(fault.value).rsplit(" ", 1)[1])
    assert kept.read_text() == "before" and out.read_text() == "somebody else's"
    assert sorted(tmp_path.iterdir()) == [out, kept.parent], "no litter"


def test_folder_that_appears_at_last_moment_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, moved = tmp_path / "out", os.rename
    out.write_text("before")

    def rename(source: Path, target: Path) -> None:
        if target == out:
            monkeypatch.undo()
            out.mkdir()
            (out / "theirs").write_text("somebody else's")
        moved(source, target)

    monkeypatch.setattr(os, "rename", rename)
    with (
        pytest.raises(OSError, match="not empty"),
        export.published(out, force=True, folder=True) as new,
    ):
        (new / "a.csv").write_text("mine")
    [aside] = tmp_path.glob("out-before-*")
    assert (aside / "out").read_text() == "before"
    assert (out / "theirs").read_text() == "somebody else's"


def test_failed_export_leaves_no_files(tmp_path: Path, command: Command) -> None:
    blind = McapFile(list(mcaps.measured(1.0))).to(tmp_path / "blind.mcap")
    stranger = tmp_path / "letter.mcap"
    stranger.write_text("Dear reader, this is no recording.")
    for words, given, says in (
        ("--mp4 out.mp4", [blind], "no picture was recorded"),
        ("--csv out", [blind, stranger], "letter.mcap"),
        ("--csv no/out", [blind], "create it first"),
    ):
        kind, out = words.split()
        assert says in command("export", kind, tmp_path / out, *given, status=1).err
    assert sorted(tmp_path.iterdir()) == [blind, stranger]
