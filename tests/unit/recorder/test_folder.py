"""The recorder on a real file system: its folder, and files in it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from testkit.recorder.recorder import Rig
from testkit.recorder.recording import UTC_NS, file, go_on, recorded

from fpvcar import config
from fpvcar.recorder.folder import LOCK, PIECES_MOST, Folder
from fpvcar.recordings import messages, reader
from fpvcar.recordings.mcap import records
from fpvcar.recordings.repair import salvage
from fpvcar.runtime.units import SECOND_NS

NAME = "Plague-20261121T193100Z-0001.mcap"
CONFIG = config.Recording(segment_s=5.0, keep_free_mb=0)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path / "state" / "recordings")
    made.enter()
    yield made
    made.leave()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_recordings_are_accessible_to_the_owner_only(folder: Folder) -> None:
    number = folder.create(NAME)
    folder.append(number, [b"a", b"", b"bc"])
    folder.sync(number)
    folder.close(number)
    folder.touch(NAME + ".keep")
    assert mode(folder.path) == 0o700
    for name, size in ((NAME, 3), (NAME + ".keep", 0)):
        assert mode(folder.path / name) == 0o600
        assert (name, size) in folder.entries()
    with pytest.raises(FileExistsError):
        folder.create(NAME)
    folder.rename(NAME, "other")
    folder.remove("other")
    folder.remove("other")
    assert {name for name, _ in folder.entries()} == {NAME + ".keep", LOCK}
    assert folder.free() > 0


def test_append_of_many_parts_is_written_whole(folder: Folder) -> None:
    number = folder.create(NAME)
    parts = [bytes([n % 251]) * (n % 7) for n in range(3 * PIECES_MOST)]
    folder.append(number, parts)
    folder.append(number, [])
    folder.append(number, [b"", b""])
    assert (folder.path / NAME).read_bytes() == b"".join(parts)
    folder.shorten(number, 10)
    folder.append(number, [b"x"])
    folder.close(number)
    assert (folder.path / NAME).read_bytes() == b"".join(parts)[:10] + b"x"


def test_short_write_is_completed(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    number = folder.create(NAME)

    def some(file: int, parts: list[bytes]) -> int:
        return os.write(file, b"".join(parts)[:5])

    monkeypatch.setattr(os, "writev", some)
    folder.append(number, [b"abc", b"defg", b"hi"])
    folder.close(number)
    assert (folder.path / NAME).read_bytes() == b"abcdefghi"


def test_second_recorder_in_a_folder_is_refused(folder: Folder) -> None:
    other = Folder(folder.path)
    with pytest.raises(OSError, match="another fpvcar records here"):
        other.enter()
    folder.leave()
    other.enter()
    other.leave()
    folder.enter()


def test_vanished_folder_is_not_created_again(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "stick")
    folder.enter()
    folder.leave()
    (tmp_path / "stick" / LOCK).unlink()
    (tmp_path / "stick").rmdir()
    with pytest.raises(FileNotFoundError):
        folder.enter()
    assert not (tmp_path / "stick").exists()


def replace(path: Path, old: Path) -> None:
    """Replace a folder by another directory."""
    path.rename(old)
    path.mkdir(mode=0o700)


def test_replaced_folder_is_detected_at_the_next_sync(tmp_path: Path) -> None:
    path = tmp_path / "card"
    rotation = recorded(Folder(path), 1, CONFIG)
    replace(path, tmp_path / "old")
    with pytest.raises(OSError, match="the folder was replaced by another one"):
        go_on(rotation, [1])
    rotation.abandon()
    go_on(rotation, [2])
    assert rotation.leftovers == []
    assert rotation.keep(UTC_NS + 2 * SECOND_NS) == 1, "the old one is out of reach"
    rotation.close()
    with reader.read(path / NAME.replace("0001", "0002")) as made:
        assert made.whole and made.counts["/camera"] == 3
    with reader.read(tmp_path / "old" / (NAME + ".part")) as made:
        assert made.counts["/camera"] == 3


def test_removed_folder_is_detected_at_the_next_sync(tmp_path: Path) -> None:
    path = tmp_path / "card"
    rotation = recorded(Folder(path), 1, CONFIG)
    path.rename(tmp_path / "old")
    with pytest.raises(FileNotFoundError):
        go_on(rotation, [1])
    rotation.abandon()
    assert not path.exists()


def test_recording_goes_on_in_the_folder_that_is_there_now(tmp_path: Path) -> None:
    rig, path = Rig(), tmp_path / "card"
    rig.rotation._folder = Folder(path)
    rig.drive(2)
    replace(path, tmp_path / "old")
    rig.drive(1)
    assert "replaced by another one" in str(rig.recorder.status().state)
    rig.drive(3)
    assert rig.recorder.status().state == "ok"
    rig.recorder.second()
    rig.drive(1)
    rig.thread.stop()
    rig.rotation.close()
    (part,) = path.glob("*.mcap")
    with reader.read(part) as made:
        said = [one.data for one in made.messages({messages.EVENT})]
    assert any(b"replaced by another one" in data for data in said)


def test_file_in_place_of_the_folder_raises_os_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("not a folder")
    with pytest.raises(OSError):
        Folder(tmp_path / "a").enter()


def test_files_on_disk_are_whole(tmp_path: Path) -> None:
    recorded(Folder(tmp_path), 12, CONFIG).close()
    paths = sorted(tmp_path.glob("*.mcap"))
    assert len(paths) == 3
    for path in paths:
        with reader.read(path) as made:
            assert made.whole
    assert not list(tmp_path.glob("*.part"))


def test_file_left_open_is_sealed_by_the_next_run(tmp_path: Path) -> None:
    recorded(Folder(tmp_path), 3, CONFIG).abandon()
    part = tmp_path / (NAME + ".part")
    with part.open("ab") as cut:
        cut.write(records.record(records.CHUNK, bytes(900))[:500])
    assert list(salvage.salvage(tmp_path, part.name))
    assert sorted(one.name for one in tmp_path.iterdir()) == [LOCK, NAME]
    with reader.read(tmp_path / NAME) as made:
        assert made.whole and made.counts["/camera"] == 9


def test_salvage_works_on_a_card_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", Mock(side_effect=PermissionError("FAT")))
    (tmp_path / "open").write_bytes(file(2, closed=False))
    with reader.read(tmp_path / "open") as made:
        salvage.write_clean(made, tmp_path / NAME)
        with pytest.raises(FileExistsError):
            salvage.write_clean(made, tmp_path / NAME)
    with reader.read(tmp_path / NAME) as clean:
        assert clean.whole
    assert sorted(one.name for one in tmp_path.iterdir()) == [NAME, "open"]
