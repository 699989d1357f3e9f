"""Directories of a run, of a car, of its recordings: owners and places."""

import os
import stat
from pathlib import Path

import pytest

from fpvcar.runtime import paths


def test_shared_runtime_directory_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir(mode=0o700)
    paths.refuse_shared(own, os.getuid())
    with pytest.raises(OSError, match="expected 12345, 0700"):
        paths.refuse_shared(own, 12345)
    own.chmod(0o750)
    with pytest.raises(OSError, match="mode 0750"):
        paths.refuse_shared(own, os.getuid())
    link = tmp_path / "link"
    link.symlink_to(own)
    with pytest.raises(OSError, match="expected a directory"):
        paths.refuse_shared(link, os.getuid())


def test_default_runtime_directory_is_private_to_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = paths.runtime_directory()
    assert path == tmp_path / f"fpvcar-{os.getuid()}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_state_directory_follows_systemd_then_xdg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "a"))
    assert paths.state_directory() == tmp_path / "a"
    monkeypatch.delenv("STATE_DIRECTORY")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "b"))
    assert paths.state_directory() == tmp_path / "b" / "fpvcar"
    assert (tmp_path / "b" / "fpvcar").is_dir()


def test_recordings_are_in_the_state_or_the_given_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    assert paths.recordings_directory("") == tmp_path / "recordings"
    assert paths.recordings_directory("~/drives") == Path.home() / "drives"
