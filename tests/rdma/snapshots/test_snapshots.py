"""Snapshots of a store on a real btrfs, by the real btrbk: set-up, hourly run, restore."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from testkit.base_station.snapshots import SECOND, Rig, refusal
from testkit.base_station.stored import DATA, NAME, SESSION, put
from testkit.recorder.card import image, mounted, run

from fpvstation.__main__ import main
from fpvstation.snapshots import tools

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="loop devices and btrbk need root"),
]


def test_hourly_run_makes_a_snapshot_only_after_a_change(rig: Rig) -> None:
    rig.set_up()
    (first,) = rig.hour()
    assert (first / SESSION / NAME).read_bytes() == DATA
    assert not list((first / tools.SNAPSHOTS).iterdir()), "no snapshot of snapshots"
    assert rig.hour() == [first]
    assert rig.verb("list") == 0 and rig.hour() == [first], "a look changes nothing"
    put(rig.store, SECOND, b"second")
    _, second = rig.hour()
    assert (second / SESSION / SECOND).exists() and not (first / SESSION / SECOND).exists()


def test_btrbk_expires_snapshots_by_the_retention(rig: Rig) -> None:
    rig.set_up("--keep", "1h")
    for number in range(3, 6):
        put(rig.store, NAME.replace("0001", f"000{number}"), b"more")
        rig.hour()
    assert len(tools.snapshots_of(rig.root)) <= 2, "the first of the hour, and the newest"


def test_setup_run_again_writes_nothing(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    rig.set_up()
    said = capsys.readouterr().out
    assert said.count("written: ") == 3 and "systemctl enable --now" in said
    rig.set_up()
    assert "written" not in capsys.readouterr().out
    rig.set_up("--keep", "24h 14d")
    assert capsys.readouterr().out.count("written: ") == 1
    assert "24h 14d" in rig.conf.read_text()


def test_systemd_accepts_the_units(rig: Rig) -> None:
    rig.set_up("--send", "nas:/srv/snapshots")
    units = list((rig.etc / "systemd/system").iterdir())
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True
    )
    assert not [line for line in done.stderr.splitlines() if str(rig.etc) in line], done.stderr
    assert (
        f"snapshots send --store {rig.root} nas:/srv/snapshots"
        in units[0].read_text() + units[1].read_text()
    )


def test_setup_names_what_is_missing_and_the_next_step(
    rig: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def setup(store: Path, *more: str) -> str:
        return refusal(capsys, "setup", "--etc", str(rig.etc), "--store", str(store), *more)

    assert "is not a store" in setup(tmp_path / "absent")
    assert '"12x" refused: expected a retention such as "48h 30d"' in setup(
        rig.root, "--keep", "12x"
    )
    assert '--send "a b:/c" refused' in setup(rig.root, "--send", "a b:/c")
    folder = rig.root.parent / "folder"
    shutil.copytree(rig.root, folder)
    assert f"btrfs subvolume create {folder}" in setup(folder)
    other = image(tmp_path / "other.img", 32, "mkfs.ext4", "-q", "-F")
    with mounted(other, tmp_path / "other") as disk:
        shutil.copytree(rig.root, disk / "store")
        assert "is on ext4: snapshots need btrfs or ZFS" in setup(disk / "store")
    spaced = rig.root.parent / "my store"
    rig.root.rename(spaced)
    assert "has letters, digits" in setup(spaced)
    spaced.rename(rig.root)
    with monkeypatch.context() as patch:
        (tmp_path / "bin").mkdir()
        for program in ("findmnt", "btrfs"):
            (tmp_path / "bin" / program).symlink_to(shutil.which(program) or "")
        patch.setenv("PATH", str(tmp_path / "bin"))
        assert "btrbk is not installed; sudo apt install btrbk" in setup(rig.root)
    assert not list(rig.etc.rglob("*.*")), "nothing is written"


def test_read_only_snapshot_folder_is_refused(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["setup", "--etc", str(rig.etc), "--store", str(rig.root)]
    run("mount", "-o", "remount,ro", rig.root.parent)
    assert f"{rig.root}/.snapshots is read-only" in refusal(capsys, *argv)
    run("mount", "-o", "remount,rw", rig.root.parent)
    run("btrfs", "subvolume", "create", rig.root / ".snapshots")
    run("btrfs", "property", "set", rig.root / ".snapshots", "ro", "true")
    assert f"{rig.root}/.snapshots is read-only" in refusal(capsys, *argv)
    run("btrfs", "property", "set", rig.root / ".snapshots", "ro", "false")
    run("btrfs", "subvolume", "delete", rig.root / ".snapshots")
    (rig.root / ".snapshots").mkdir()
    assert "is a folder, expected a subvolume" in refusal(capsys, *argv)


def test_sanoid_template_has_the_retention() -> None:
    path, text = tools.sanoid_configuration("tank/drives", "48h 30d")
    assert path == "sanoid/fpvstation/sanoid.conf" and "[tank/drives]" in text
    assert "hourly = 48\ndaily = 30\nweekly = 0\nmonthly = 0\nyearly = 0\n" in text


def test_removed_session_and_damaged_file_are_restored(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    put(rig.store, SECOND, b"second")
    rig.set_up()
    rig.hour()
    rig.store.remove(SESSION)
    rig.hour()
    first, second = tools.snapshots_of(rig.root)
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(first.at_s))
    capsys.readouterr()
    assert rig.verb("list") == 0
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == [
        str(first.path),
        str(second.path),
    ]
    assert rig.verb("list", SESSION.rpartition("/")[2]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{at}  {first.path}  2 segments"]
    assert "has no Plague" in refusal(
        capsys, "restore", "--store", str(rig.root), SESSION, "--at", "2100-01-01"
    )
    file = f"{SESSION.rpartition('/')[2]}/{SECOND}"
    assert rig.verb("restore", file, "--at", at) == 0
    assert "1 segment restored from the snapshot of" in capsys.readouterr().out
    assert [segment.path for segment in rig.store.segments()] == [f"{SESSION}/{SECOND}"]
    assert rig.verb("restore", SESSION, "--at", at) == 0
    assert "1 segment restored" in capsys.readouterr().out
    (rig.root / SESSION / NAME).write_bytes(b"?" + DATA[1:])
    capsys.readouterr()
    assert rig.verb("restore", SESSION, "--at", at) == 0
    assert "1 segment restored" in capsys.readouterr().out
    argv = ["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"]
    subprocess.run(argv, cwd=rig.root / SESSION, check=True)
    assert main(["verify", "--store", str(rig.root)]) == 0
    assert not list(rig.root.glob(".incoming/snapshot"))


def test_file_that_is_bad_in_the_snapshot_too_is_not_restored(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    """A snapshot shares its blocks with the store: rot is in both."""
    rig.set_up()
    (rig.root / SESSION / NAME).write_bytes(b"?" + DATA[1:])
    rig.hour()
    said = refusal(capsys, "restore", "--store", str(rig.root), SESSION, "--at", "2100-01-01")
    assert f"{NAME}: bad in that snapshot, too" in said
    assert list(rig.root.glob(f".bad/{SESSION}/*")), "the file here is kept"


def test_restore_refuses_times_without_a_snapshot(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["restore", "--store", str(rig.root), SESSION, "--at"]
    assert "or earlier: there are none" in refusal(capsys, *argv, "2020-01-01")
    assert main(["snapshots", "list", "--store", str(rig.root)]) == 1
    rig.set_up()
    rig.hour()
    assert "or earlier: the oldest is of 20" in refusal(capsys, *argv, "2020-01-01")
    assert '"noon" refused: expected a time such as 14:00' in refusal(capsys, *argv, "noon")
    inside = str(tools.snapshots_of(rig.root)[0].path)
    argv = ["restore", "--store", inside, SESSION, "--at", "2100-01-01"]
    assert refusal(capsys, *argv)
    assert (rig.root / SESSION / NAME).read_bytes() == DATA
