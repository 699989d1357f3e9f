"""Output of an export replaces nothing by accident."""

import os
import sys
from pathlib import Path

import pytest
from testkit import mcaps
from testkit.mcaps import McapFile

from fpvcar.recordings.export import export
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.runtime import files
from tests.unit.recordings.export.test_export import drive, film


@pytest.mark.parametrize(
    ("kind", "module", "next_step"), [("parquet", "pyarrow", "pip install pyarrow")]
)
def test_missing_library_error_names_the_install_command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    module: str,
    next_step: str,
) -> None:
    mcap_file = McapFile(list(mcaps.measured(0.5))).to(tmp_path / "one.mcap")
    monkeypatch.setitem(sys.modules, module, None)
    assert export.run(kind, tmp_path / "out", [mcap_file], False) == 1
    said = capsys.readouterr().err
    assert f"needs {module}" in said and next_step in said
    assert sorted(tmp_path.iterdir()) == [mcap_file]


@pytest.mark.parametrize("kind", ["csv", "mp4"])
def test_existing_output_is_not_replaced_without_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    mcap_file = McapFile(drive()).to(tmp_path / "one.mcap")
    out = tmp_path / "out"
    if kind == "csv":
        out.mkdir()
        (out / "mine.txt").write_text("mine")
    else:
        out.write_text("mine")
    assert export.run(kind, out, [mcap_file], False) == 1
    assert "exists: choose" in capsys.readouterr().err
    assert out.is_dir() or out.read_text() == "mine"
    assert export.run(kind, out, [mcap_file], True) == 0
    assert not (out / "mine.txt").exists() if kind == "csv" else film(out)
    assert sorted(tmp_path.iterdir()) == [mcap_file, out], "no litter"


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


def test_failed_export_leaves_no_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mcap_file = McapFile(list(mcaps.measured(1.0))).to(tmp_path / "blind.mcap")
    stranger = tmp_path / "letter.mcap"
    stranger.write_text("Dear reader, this is no recording.")
    assert export.run("mp4", tmp_path / "out.mp4", [mcap_file], False) == 1
    assert "no picture was recorded" in capsys.readouterr().err
    assert export.run("csv", tmp_path / "out", [mcap_file, stranger], False) == 1
    assert "letter.mcap" in capsys.readouterr().err
    assert export.run("csv", tmp_path / "no" / "out", [mcap_file], False) == 1
    assert "create it first" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == [mcap_file, stranger]
