"""Recall from a folder archive that has lost, damaged or hidden a part of a session."""

import asyncio
import errno
import os
import shutil
from pathlib import Path
from random import Random

import pytest
from testkit.base_station.stored import NAME, SESSION, put

from fpvstation.__main__ import main
from fpvstation.replicas.remote import PlaceFault
from fpvstation.replicas.tiers import Tiers, archive_of
from fpvstation.store.archived import ARCHIVED, LEFT, path_of
from fpvstation.store.disk import Folder
from fpvstation.store.replica_log import DAY_S
from fpvstation.store.verify import Verdict, verify
from tests.unit.fpvstation.replicas.test_tiers import FILES, OTHER, OTHER_NAME, SECOND, Rig, act


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = Rig(tmp_path)
    rig.archive()
    return rig


def faults(rig: Rig) -> list[Verdict]:
    found = verify(rig.store, Folder(rig.root), sorted(rig.store.known()), 1e5)
    return [verdict for verdict in found if verdict.fault]


class FolderOffice:
    """Office in a folder of this machine."""

    place = "nas:/srv"

    def __init__(self, rig: Rig, folder: Path) -> None:
        self._root, self._folder = rig.root, folder
        shutil.copytree(rig.there / SESSION, folder)

    async def fetch(self, session: str, on_progress: object) -> dict[str, str]:
        into = f".incoming/recall/{session}"
        shutil.copytree(self._folder, self._root / into)
        return {path.name: f"{into}/{path.name}" for path in self._folder.iterdir()}


@pytest.fixture
def office(rig: Rig, tmp_path: Path) -> FolderOffice:
    return FolderOffice(rig, tmp_path / "office")


def recall(rig: Rig, *offices: FolderOffice) -> list[str]:
    archive = archive_of(str(rig.there), rig.root)
    remotes = list(offices)
    tiers = Tiers(rig.store, Folder(rig.root), archive, (), act, remotes=remotes)  # type: ignore[arg-type]
    return asyncio.run(tiers.recall(SESSION))


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the archive's disk fail to read the second segment."""
    copy2 = shutil.copy2

    def copy(source: Path, target: Path) -> None:
        if source.name == SECOND:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(source))
        copy2(source, target)

    monkeypatch.setattr(shutil, "copy2", copy)
    digest = "fpvstation.replicas.folder_archive.sha256_of"
    monkeypatch.setattr(digest, lambda path: copy(path, path.with_name("never")))


def test_unreadable_sector_costs_only_its_file(rig: Rig, unreadable: None) -> None:
    assert recall(rig) == [SECOND]
    assert (rig.root / SESSION / NAME).read_bytes() == FILES[NAME]
    assert (rig.there / SESSION / SECOND).exists(), "kept, and tried again"
    (fault,) = faults(rig)
    assert fault.path == f"{SESSION}/{SECOND}"


def test_unreadable_sector_is_supplied_by_an_office(
    rig: Rig, office: FolderOffice, unreadable: None
) -> None:
    assert recall(rig, office) == []
    rig.check_one_copy(rig.root)
    assert not (rig.there / SESSION).exists() and not faults(rig)


def test_rotten_file_is_tried_again_once_a_day_until_it_is_right(rig: Rig) -> None:
    file = rig.there / SESSION / SECOND
    file.write_bytes(b"sEcond")
    assert rig.recall() == [SECOND]
    file.write_bytes(FILES[SECOND])
    archive = archive_of(str(rig.there), rig.root)

    def resume(ahead_s: float) -> None:
        now_s = rig.store._utc_s() + ahead_s
        tiers = Tiers(rig.store, Folder(rig.root), archive, (), act, lambda: now_s)
        assert asyncio.run(tiers.resume()) == []

    resume(DAY_S / 2)
    assert file.exists()
    resume(DAY_S * 2)
    rig.check_one_copy(rig.root)
    assert not file.exists() and not list(rig.root.rglob(f"*{LEFT}"))


@pytest.mark.parametrize("how", ["renamed", "emptied"])
def test_missing_folder_of_a_mounted_archive_is_away_and_never_empty(rig: Rig, how: str) -> None:
    folder, kept = rig.there / SESSION, rig.there / "kept"
    folder.rename(kept)
    if how == "emptied":
        folder.mkdir()
    assert [fault.path for fault in faults(rig)] == [f"{SESSION}/{name}" for name in FILES]
    with pytest.raises(PlaceFault, match="has no right file .* recall --lost Plague-2026"):
        rig.recall()
    assert rig.store.archived(SESSION) and rig.store.is_away(SESSION)
    if how == "emptied":
        folder.rmdir()
    kept.rename(folder)
    assert rig.recall() == []
    rig.check_one_copy(rig.root)


def test_missing_folder_is_supplied_by_an_office(rig: Rig, office: FolderOffice) -> None:
    shutil.rmtree(rig.there / SESSION)
    assert recall(rig, office) == []
    rig.check_one_copy(rig.root)


def test_session_counted_as_lost_comes_back_from_its_car_or_its_archive(rig: Rig) -> None:
    (rig.there / SESSION).rename(rig.there / "kept")
    tiers = rig.tiers()
    assert asyncio.run(tiers.recall(SESSION, gone=True)) == sorted(FILES)
    assert rig.store.archived(SESSION) is None and len(faults(rig)) == len(FILES)
    put(rig.store, NAME, FILES[NAME])
    (rig.there / "kept").rename(rig.there / SESSION)
    assert rig.recall() == []
    rig.check_one_copy(rig.root)
    assert not (rig.there / SESSION).exists()


def test_foreign_file_in_the_archive_is_not_deleted(rig: Rig) -> None:
    notes = rig.there / SESSION / "notes.txt"
    notes.write_text("mine")
    assert rig.recall() == []
    assert notes.read_text() == "mine" and not (rig.there / SESSION / NAME).exists()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("damaged", ["record", "copies", "sums"])
def test_two_lists_outvote_the_third(rig: Rig, damaged: str, seed: int) -> None:
    """Flip a bit of a checksum or a name in one of the three lists."""
    path = {
        "record": rig.root / path_of(SESSION),
        "copies": rig.root / f".copies/{SESSION}.json",
        "sums": rig.there / SESSION / "SHA256SUMS",
    }[damaged]
    random, text = Random(seed), bytearray(path.read_bytes())
    name = text.index(SECOND.encode(), text.index(b"segments") if damaged != "sums" else 0)
    sha256 = name - 60 if damaged == "sums" else name + len(SECOND) + 10
    text[random.choice([name, sha256]) + random.randrange(20)] ^= 1
    path.write_bytes(text)
    assert rig.recall() == []
    rig.check_one_copy(rig.root)
    assert not (rig.there / SESSION).exists() and not list(rig.there.glob(".bad/*"))


def test_verify_mends_a_record_that_file_and_copies_disprove(rig: Rig) -> None:
    path = rig.root / path_of(SESSION)
    text = path.read_text()
    at = text.index(SECOND) + len(SECOND) + 10
    path.write_text(text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :])
    assert any("mended" in fault.done for fault in faults(rig))
    assert path.read_text() == text and not faults(rig)


@pytest.mark.parametrize("kind", ["folder", "file", "loop"])
def test_link_replaced_by_something_else_does_not_block_a_recall(rig: Rig, kind: str) -> None:
    link = rig.root / SESSION
    link.unlink()
    if kind == "folder":
        shutil.copytree(rig.there / SESSION, link)
        (link / "notes.txt").write_text("mine")
    elif kind == "file":
        link.write_text("mine")
    else:
        link.symlink_to(link.name)
    assert rig.recall() == []
    for kept in rig.root.glob(f".bad/{SESSION}.*"):
        assert (kept / "notes.txt" if kind == "folder" else kept).read_text() == "mine"
        shutil.rmtree(kept) if kept.is_dir() else kept.unlink()
        kind = "kept"
    assert kind in ("kept", "loop")
    rig.check_one_copy(rig.root)


@pytest.mark.parametrize("where", ["session", "stray", "day", "car"])
def test_loop_of_links_stops_no_other_session(
    rig: Rig,
    where: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    put(rig.store, OTHER_NAME, b"other")
    link = rig.root / SESSION
    if where == "session":
        link.unlink()
    else:
        link = {
            "stray": link.with_name("a"),
            "day": rig.root / "Plague" / "2026-11-22",
            "car": rig.root / "Rat",
        }[where]
    link.symlink_to(link.name)
    config = tmp_path / "station.toml"
    config.write_text(f'[tiers]\narchive = "{rig.there}"\nabove = "1 %"\n')
    for argv in (["verify"], ["rebuild"]):
        status = main([*argv, f"--store={rig.root}"])
        assert status == (argv == ["verify"] and where == "session")
    told = capsys.readouterr()
    assert "listed" in told.out and "internal" not in told.err
    (rig.root / OTHER / "SHA256SUMS").touch()
    argv = ["archive", OTHER, f"--store={rig.root}", f"--config={config}"]
    assert main(argv) == (where == "session"), "the loop is named"
    assert "archived in" in capsys.readouterr().out


def test_files_of_a_killed_recall_are_used(rig: Rig) -> None:
    """A kill came before the record said `returned`; since then the archive has rotted."""
    new = rig.root / ARCHIVED / f"{SESSION}.new"
    shutil.copytree(rig.there / SESSION, new)
    (new / NAME).write_bytes(b"half")
    (rig.there / SESSION / SECOND).write_bytes(b"sEcond")
    assert asyncio.run(rig.tiers().recall(SESSION, gone=True)) == []
    rig.check_one_copy(rig.root)
    assert not (rig.there / SESSION).exists()
