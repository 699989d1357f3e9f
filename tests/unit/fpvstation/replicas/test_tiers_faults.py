"""Archive and recall with disks that are unmounted in the middle, and with foreign files."""

import asyncio
import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from testkit.base_station.builder import FILES, Station
from testkit.base_station.stored import NAME, SESSION

from fpvstation.errors import StationError
from fpvstation.replicas.recall import Recall
from fpvstation.replicas.remote import PlaceFault
from fpvstation.replicas.tiers import Tiers
from fpvstation.store.disk import make_folder
from fpvstation.store.identity import MARKER
from fpvstation.store.sums_file import SUMS_FILE

pytestmark = pytest.mark.usefixtures("filled")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a disk")
def test_archive_unmounted_in_the_middle_gets_no_byte_below_its_disk(
    rig: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "none", str(rig.there)], check=True)

    def unmount_first(folder: Path) -> None:
        subprocess.run(["umount", "-l", str(rig.there)], capture_output=True)
        make_folder(folder)

    monkeypatch.setattr("fpvstation.replicas.folder_archive.make_folder", unmount_first)
    rig.archive()
    assert not os.path.ismount(rig.there) and not list(rig.there.iterdir())


def test_store_unmounted_during_a_recall_keeps_the_archived_copy(
    rig: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.archive()
    put_back = Recall._put_back

    def unmount_after(recall: Recall, session: str) -> None:
        put_back(recall, session)
        (rig.root / MARKER).rename(rig.root / "away")

    with monkeypatch.context() as patch:
        patch.setattr(Recall, "_put_back", unmount_after)
        with pytest.raises(StationError, match="mount its disk"):
            rig.recall()
    assert {path.name for path in (rig.there / SESSION).iterdir()} == {*FILES, SUMS_FILE}
    (rig.root / "away").rename(rig.root / MARKER)
    assert rig.resume() == []
    rig.check_one_copy(rig.root)


def test_unmounted_archive_is_not_claimed_again_before_its_first_session(rig: Station) -> None:
    asyncio.run(rig.tiers().claim())
    rig.unmount()
    rig.there.mkdir()
    with pytest.raises(PlaceFault, match="is missing there: mount its disk"):
        rig.archive()
    assert not list(rig.there.iterdir())
    rig.there.rmdir()
    rig.mount()
    rig.archive()
    rig.check_one_copy(rig.there)


def test_session_with_a_foreign_file_stays_here(rig: Station) -> None:
    notes = rig.root / SESSION / "notes.txt"
    notes.write_text("mine")
    with pytest.raises(StationError, match="notes.txt is not archived: move it elsewhere"):
        rig.archive()
    assert notes.read_text() == "mine" and rig.store.archived(SESSION) is None
    notes.unlink()
    rig.archive()
    rig.check_one_copy(rig.there)


def test_file_of_a_killed_write_does_not_block_an_archive(rig: Station) -> None:
    (rig.root / SESSION / ".0123456789abcdef.new").write_bytes(b"half a list")
    rig.archive()
    assert rig.recall() == []
    rig.check_one_copy(rig.root)


def test_copy_damaged_on_its_way_back_keeps_the_archived_one(
    rig: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.archive()
    copy2 = shutil.copy2

    def copy_wrongly(source: Path, target: Path) -> None:
        copy2(source, target)
        with target.open("r+b") as file:
            file.write(b"?")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copy2", copy_wrongly)
        with pytest.raises(PlaceFault, match="right in .*damaged on its way.*recall it again"):
            rig.recall()
    rig.check_one_copy(rig.there)
    assert rig.recall() == []
    rig.check_one_copy(rig.root)


def test_archive_unmounted_during_a_recall_loses_no_session(
    rig: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.archive()

    def unmount_first(folder: Path) -> None:
        rig.unmount()
        rig.there.mkdir()
        make_folder(folder)

    with monkeypatch.context() as patch:
        patch.setattr("fpvstation.replicas.folder_archive.make_folder", unmount_first)
        with contextlib.suppress(PlaceFault):
            rig.recall()
    rig.there.rmdir()
    rig.mount()
    assert rig.resume() == []
    rig.check_listed()


@pytest.mark.parametrize("step", ["_complete_out", "shutil.rmtree"])
def test_copy_damaged_after_a_kill_keeps_the_session_here(
    rig: Station, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    rmtree = shutil.rmtree

    def kill_before_old(path: Path, *rest: Any) -> None:
        kill() if path.suffix == ".old" else rmtree(path, *rest)

    with monkeypatch.context() as patch:
        if step == "_complete_out":
            patch.setattr(Tiers, step, kill)
        else:
            patch.setattr(shutil, "rmtree", kill_before_old)
        with pytest.raises(KeyboardInterrupt):
            rig.archive()
    (rig.there / SESSION / NAME).write_bytes(b"rotted")
    assert rig.resume() == []
    rig.check_listed()
    assert not (rig.root / SESSION).is_symlink() and rig.store.archived(SESSION) is None
    rig.archive()
    rig.check_listed()
    assert (rig.there / SESSION / NAME).read_bytes() == FILES[NAME]
