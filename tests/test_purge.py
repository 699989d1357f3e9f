"""Files left by `apt purge fpvcar`: recordings, in any folder that the profile named."""

import os
import subprocess
from pathlib import Path

import pytest

from fpvcar.cli import setup

POSTRM = Path(__file__).resolve().parent.parent / "debian" / "fpvcar.postrm"
DEBCONF = """\
db_input() { echo asked; }
db_go() { :; }
db_get() { RET=$ANSWER; }
db_purge() { :; }
"""
MINUTE = "Rusty-20261121T193100Z-0001.mcap"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A computer with the car's state, without a recording. The fake userdel deletes no account."""
    for name in ("etc/fpvcar", "var/lib/fpvcar", "usr/share/debconf", "fakes"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("codes.json", "kept.json", ".hidden"):
        (tmp_path / "var/lib/fpvcar" / name).touch()
    (tmp_path / "var/lib/fpvcar/made").mkdir()
    (tmp_path / "usr/share/debconf/confmodule").write_text(DEBCONF)
    (tmp_path / "fakes/userdel").write_text('#!/bin/sh\necho "userdel $1"\n')
    (tmp_path / "fakes/userdel").chmod(0o755)
    return tmp_path


def purge(
    root: Path, answer: str = "false", verb: str = "purge"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", POSTRM, verb],
        check=True,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "DPKG_ROOT": str(root),
            "ANSWER": answer,
            "PATH": f"{root / 'fakes'}:/usr/bin:/bin",
        },
    )


def record(root: Path, folder: str, name: str = MINUTE) -> Path:
    path = root / "var/lib/fpvcar" / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


@pytest.mark.parametrize("folder", ["recordings", "drives", "my drives/2026", ".r", ""])
@pytest.mark.parametrize("suffix", ["", ".part", ".roll", ".keep"])
def test_recording_survives_purge_in_any_folder(root: Path, folder: str, suffix: str) -> None:
    path = record(root, folder, MINUTE + suffix)
    done = purge(root)
    state = root / "var/lib/fpvcar"
    assert done.stdout.splitlines()[0] == "asked" and path.exists()
    assert [one for one in state.rglob("*") if one.is_file()] == [path]
    assert f"recordings are left in {state}" in done.stderr
    assert "userdel fpvcar\n" not in done.stdout, "they have an owner"


def test_confirmed_purge_deletes_recordings(root: Path) -> None:
    record(root, "drives")
    done = purge(root, "true")
    assert not (root / "var/lib/fpvcar").exists()
    assert done.stdout.startswith("asked\n") and "userdel fpvcar\n" in done.stdout


def test_purge_without_recording_asks_no_question(root: Path) -> None:
    (root / "var/lib/fpvcar/recordings").mkdir()
    done = purge(root)
    assert "asked" not in done.stdout and "userdel fpvcar\n" in done.stdout
    assert not (root / "var/lib/fpvcar").exists() and not (root / "etc/fpvcar").exists()


def test_purge_removes_files_of_setup(root: Path) -> None:
    for name in setup.OWN_FILES:
        (root / name).parent.mkdir(parents=True)
        (root / name).touch()
    purge(root)
    assert [one for one in (root / "etc").rglob("*") if one.is_file()] == []


def test_purge_removes_events_for_the_broker_and_their_user(root: Path) -> None:
    (root / "var/lib/fpvcar-mqtt").mkdir()
    (root / "var/lib/fpvcar-mqtt/mqtt.sqlite").touch()
    done = purge(root)
    assert not (root / "var/lib/fpvcar-mqtt").exists()
    assert "userdel fpvcar-mqtt\n" in done.stdout


def test_removal_deletes_saved_old_version(root: Path) -> None:
    (root / "var/cache/fpvcar").mkdir(parents=True)
    purge(root, verb="upgrade")
    assert (root / "var/cache/fpvcar").exists()
    purge(root, verb="remove")
    assert not (root / "var/cache/fpvcar").exists()
    assert (root / "var/lib/fpvcar/codes.json").exists()


def test_recordings_stay_without_debconf(root: Path) -> None:
    path = record(root, "drives")
    (root / "usr/share/debconf/confmodule").unlink()
    purge(root, "true")
    assert path.exists()


@pytest.mark.parametrize("verb", ["remove", "purge"])
def test_removal_leaves_no_failed_unit_in_the_list(root: Path, verb: str) -> None:
    (root / "run/systemd/system").mkdir(parents=True)
    (root / "fakes/systemctl").write_text('#!/bin/sh\necho "systemctl $*"\n')
    (root / "fakes/systemctl").chmod(0o755)
    assert "systemctl reset-failed fpvcar*\n" in purge(root, verb=verb).stdout
    assert "systemctl" not in purge(root, verb="upgrade").stdout
