"""Whole files: the power, or the card, fails at each step of writing one."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fpvcar.runtime import files

OLD, NEW = b"what was there before", [b"what ", b"", b"comes now"]
CALLS = ("open", "fsync", "link", "rename", "replace", "unlink")


class PowerCut(BaseException):
    """End of every process by a power cut."""


def no_links(old: Path, new: Path) -> None:
    """Fail like link(2) of FAT."""
    raise PermissionError(errno.EPERM, "Operation not permitted")


class Card:
    """Calls of `os` that fail from the `fails_at`-th on, or only there.

    The card records syncs: after a power cut only synced files are on it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fails_at: int | None = None
        self.fault: BaseException = PowerCut()
        self.done: list[str] = []
        self.synced: set[int] = set()
        self._patch = monkeypatch
        for name in CALLS:
            monkeypatch.setattr(os, name, self._watched(name, getattr(os, name)))

    def has_no_links(self) -> None:
        """Refuse hard links like a FAT."""
        self._patch.setattr(os, "link", self._watched("link", no_links))

    def _watched(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*given: Any, **named: Any) -> Any:
            self.step(name)
            done = act(*given, **named)
            if name == "fsync":
                self.synced.add(os.fstat(given[0]).st_ino)
            return done

        return watched

    def step(self, name: str) -> None:
        """Count one more step; it may be the failing one."""
        number, cut = len(self.done), isinstance(self.fault, PowerCut)
        self.done.append(name)
        if self.fails_at is not None and (
            number == self.fails_at or cut and number > self.fails_at
        ):
            raise self.fault

    def pieces(self) -> Iterator[bytes]:
        """Yield the pieces to write, each piece a step."""
        for piece in NEW:
            self.step("piece")
            yield piece

    def power_returns(self, folder: Path) -> None:
        """Discard everything that was not synced."""
        for path in folder.iterdir():
            if path.stat().st_ino not in self.synced:
                path.write_bytes(path.read_bytes()[:3])


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Card:
    return Card(monkeypatch)


REPLACES = ["open", "piece", "piece", "piece", "fsync", "replace", "open", "fsync"]
IS_NEW = [*REPLACES[:5], "link", "unlink", "open", "fsync"]
WITHOUT_LINKS = [*REPLACES[:5], "link", "rename", "open", "fsync"]


@pytest.mark.parametrize(
    ("replace", "links", "steps"),
    [(True, True, REPLACES), (False, True, IS_NEW), (False, False, WITHOUT_LINKS)],
)
def test_data_is_synced_before_rename_and_folder_after(
    tmp_path: Path, card: Card, replace: bool, links: bool, steps: list[str]
) -> None:
    if not links:
        card.has_no_links()
    files.write_whole(tmp_path / "a", card.pieces(), replace)
    assert card.done == steps
    assert tmp_path.stat().st_ino in card.synced
    assert [one.name for one in tmp_path.iterdir()] == ["a"]
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


@pytest.mark.parametrize("at", range(len(REPLACES)))
def test_power_cut_leaves_the_old_or_the_new_file(tmp_path: Path, card: Card, at: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(OLD)
    card.synced.add(path.stat().st_ino)
    card.fails_at = at
    with pytest.raises(PowerCut):
        files.write_whole(path, card.pieces())
    card.fails_at = None
    card.power_returns(tmp_path)
    assert path.read_bytes() == (b"".join(NEW) if at > 5 else OLD)
    files.write_whole(path, NEW)
    assert path.read_bytes() == b"".join(NEW)


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("at", range(len(IS_NEW)))
def test_power_cut_leaves_no_file_or_a_whole_file(
    tmp_path: Path, card: Card, at: int, links: bool
) -> None:
    path = tmp_path / "a"
    if not links:
        card.has_no_links()
    card.fails_at = at
    with pytest.raises(PowerCut):
        files.write_whole(path, card.pieces(), replace=False)
    card.fails_at = None
    card.power_returns(tmp_path)
    assert path.exists() == (at > (5 if links else 6))
    assert not path.exists() or path.read_bytes() == b"".join(NEW)


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("at", range(len(IS_NEW)))
def test_card_fault_leaves_no_temporary_file(
    tmp_path: Path, card: Card, at: int, replace: bool
) -> None:
    path = tmp_path / "a"
    card.fails_at, card.fault = at, OSError(errno.EIO, "Input/output error")
    fails = at < len(REPLACES) if replace else at != IS_NEW.index("link")
    with pytest.raises(OSError) if fails else contextlib.nullcontext():
        files.write_whole(path, card.pieces(), replace)
    assert [one.name for one in tmp_path.iterdir()] in ([], ["a"])
    assert not path.exists() or path.read_bytes() == b"".join(NEW)


def test_fault_of_the_data_source_keeps_the_old_file(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise ZeroDivisionError

    (tmp_path / "a").write_bytes(OLD)
    for replace in (True, False):
        with pytest.raises(ZeroDivisionError):
            files.write_whole(tmp_path / "a", pieces(), replace)
    assert (tmp_path / "a").read_bytes() == OLD
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("links", [True, False])
def test_existing_file_is_not_replaced_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    (tmp_path / "a").write_bytes(OLD)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("a", "dangling"):
        with pytest.raises(FileExistsError):
            files.write_whole(tmp_path / name, NEW, replace=False)
    assert (tmp_path / "a").read_bytes() == OLD
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "dangling"]
    assert files.write_whole(tmp_path / "a", NEW) == sum(map(len, NEW))


def test_published_folder_is_whole_and_replaces_no_other(tmp_path: Path) -> None:
    for name in ("new", "taken"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "inside").write_text(name)
    with pytest.raises(FileExistsError, match="taken"):
        files.publish(tmp_path / "new", tmp_path / "taken")
    files.publish(tmp_path / "new", tmp_path / "free")
    assert (tmp_path / "free" / "inside").read_text() == "new"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["free", "taken"]


def test_file_has_its_owner_before_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = (12345, 12345) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    owners: list[tuple[int, int]] = []

    def replace(new: Path, path: Path) -> None:
        found = new.stat()
        owners.append((found.st_uid, found.st_gid))
        os.rename(new, path)

    monkeypatch.setattr(os, "replace", replace)
    files.write_whole(tmp_path / "file", [b"x"], owner=owner)
    assert owners == [owner] and (tmp_path / "file").read_bytes() == b"x"


class Note(msgspec.Struct):
    """Record of today's version."""

    text: str
    later: dict[str, msgspec.Raw] = {}


def test_fields_of_a_later_version_are_written_back() -> None:
    text = b'{"new":{"a":[1]},"text":"hello"}'
    note = files.decoded(text, Note)
    assert note.text == "hello" and list(note.later) == ["new"]
    note.text = "changed"
    assert msgspec.json.decode(files.encoded(note)) == {"new": {"a": [1]}, "text": "changed"}
    plain = files.decoded(b'{"text":"x"}', Note)
    assert plain == Note("x") and bytes(files.encoded(plain)) == b'{"text":"x"}'
    for bad in (b"[]", b"{", b'{"text":1}'):
        with pytest.raises((ValueError, msgspec.DecodeError)):
            files.decoded(bad, Note)
