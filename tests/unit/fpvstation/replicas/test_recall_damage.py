"""Recall from a folder archive that has lost, damaged or hidden a part of a session."""

import errno
import os
import shutil
from pathlib import Path
from random import Random

import pytest
from testkit.base_station.builder import FILES, OTHER, OTHER_NAME, Station
from testkit.base_station.office import PlayedOffice
from testkit.base_station.stored import NAME, SECOND, SESSION, put

from fpvstation.replicas.remote import PlaceFault
from fpvstation.store.archived import ARCHIVED, LEFT, path_of
from fpvstation.store.replica_log import DAY_S
from tests.unit.fpvstation.conftest import Run

pytestmark = pytest.mark.usefixtures("archived")


class FolderOffice(PlayedOffice):
    """Office in a folder of this machine."""

    place = "nas:/srv"

    def __init__(self, rig: Station, folder: Path) -> None:
        super().__init__(rig.root)
        self._folder = folder
        shutil.copytree(rig.there / SESSION, folder)

    async def fetch(self, session: str, on_progress: object) -> dict[str, str]:
        into = f".incoming/recall/{session}"
        shutil.copytree(self._folder, self.root / into)
        return {path.name: f"{into}/{path.name}" for path in self._folder.iterdir()}


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


def test_unreadable_sector_costs_only_its_file(rig: Station, unreadable: None) -> None:
    assert rig.recall() == [SECOND]
    assert (rig.root / SESSION / NAME).read_bytes() == FILES[NAME]
    assert (rig.there / SESSION / SECOND).exists(), "kept, and tried again"
    (fault,) = rig.faults()
    assert fault.path == f"{SESSION}/{SECOND}"


def test_rotten_file_is_tried_again_once_a_day_until_it_is_right(rig: Station) -> None:
    file = rig.there / SESSION / SECOND
    file.write_bytes(b"sEcond")
    assert rig.recall() == [SECOND]
    file.write_bytes(FILES[SECOND])
    rig.utc_s += DAY_S / 2
    assert rig.resume() == [] and file.exists()
    rig.utc_s += DAY_S * 1.5
    assert rig.resume() == []
    rig.check_one_copy(rig.root)
    assert not file.exists() and not list(rig.root.rglob(f"*{LEFT}"))


@pytest.mark.parametrize("how", ["renamed", "emptied"])
def test_missing_folder_of_a_mounted_archive_is_away_and_never_empty(
    rig: Station, how: str
) -> None:
    folder, kept = rig.there / SESSION, rig.there / "kept"
    folder.rename(kept)
    if how == "emptied":
        folder.mkdir()
    assert [fault.path for fault in rig.faults()] == [f"{SESSION}/{name}" for name in FILES]
    with pytest.raises(PlaceFault, match="has no right file .* recall --lost Plague-2026"):
        rig.recall()
    assert rig.store.archived(SESSION) and rig.store.is_away(SESSION)
    if how == "emptied":
        folder.rmdir()
    kept.rename(folder)
    assert rig.recall() == []
    rig.check_one_copy(rig.root)


@pytest.mark.parametrize("damage", ["unreadable sector", "missing folder"])
def test_damage_in_the_archive_is_supplied_by_an_office(
    rig: Station, tmp_path: Path, damage: str, request: pytest.FixtureRequest
) -> None:
    office = FolderOffice(rig, tmp_path / "office")
    if damage == "missing folder":
        shutil.rmtree(rig.there / SESSION)
    else:
        request.getfixturevalue("unreadable")
    assert rig.recall(office) == []
    rig.check_one_copy(rig.root)
    assert not (rig.there / SESSION).exists() and not rig.faults()


def test_session_counted_as_lost_comes_back_from_its_car_or_its_archive(rig: Station) -> None:
    (rig.there / SESSION).rename(rig.there / "kept")
    assert rig.recall(gone=True) == sorted(FILES)
    assert rig.store.archived(SESSION) is None and len(rig.faults()) == len(FILES)
    put(rig.store, NAME, FILES[NAME])
    (rig.there / "kept").rename(rig.there / SESSION)
    assert rig.recall() == []
    rig.check_one_copy(rig.root)
    assert not (rig.there / SESSION).exists()


def test_foreign_file_in_the_archive_is_not_deleted(rig: Station) -> None:
    notes = rig.there / SESSION / "notes.txt"
    notes.write_text("mine")
    assert rig.recall() == []
    assert notes.read_text() == "mine" and not (rig.there / SESSION / NAME).exists()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("damaged", ["record", "copies", "sums"])
def test_two_lists_outvote_the_third(rig: Station, damaged: str, seed: int) -> None:
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


def test_verify_mends_a_record_that_file_and_copies_disprove(rig: Station) -> None:
    path = rig.root / path_of(SESSION)
    text = path.read_text()
    at = text.index(SECOND) + len(SECOND) + 10
    path.write_text(text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :])
    assert any("mended" in fault.done for fault in rig.faults())
    assert path.read_text() == text and not rig.faults()


@pytest.mark.parametrize("kind", ["folder", "file", "loop"])
def test_link_replaced_by_something_else_does_not_block_a_recall(rig: Station, kind: str) -> None:
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
    rig: Station, where: str, tmp_path: Path, run: Run, state: Path
) -> None:
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
    for verb in ("verify", "rebuild"):
        answer = run(verb, f"--store={rig.root}")
        assert answer.status == (verb == "verify" and where == "session")
        assert "internal" not in answer.err
    assert "listed" in answer.out
    (rig.root / OTHER / "SHA256SUMS").touch()
    answer = run("archive", OTHER, f"--store={rig.root}", f"--config={config}")
    assert answer.status == (where == "session"), "the loop is named"
    assert "archived in" in answer.out


def test_files_of_a_killed_recall_are_used(rig: Station) -> None:
    """A kill came before the record said `returned`; since then the archive has rotted."""
    new = rig.root / ARCHIVED / f"{SESSION}.new"
    shutil.copytree(rig.there / SESSION, new)
    (new / NAME).write_bytes(b"half")
    (rig.there / SESSION / SECOND).write_bytes(b"sEcond")
    assert rig.recall(gone=True) == []
    rig.check_one_copy(rig.root)
    assert not (rig.there / SESSION).exists()
