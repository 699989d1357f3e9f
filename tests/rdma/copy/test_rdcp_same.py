"""rdcp with the same source and target: refused as by cp, and unharmed."""

import os
from pathlib import Path

import pytest
from testkit.network.pipes import Ended, Tools

from tests.rdma.copy.test_rdcp import copied, facts
from tests.rdma.copy.test_rdcp_stream import SOME_FAILED, sink
from tests.rdma.near import Near
from tests.rdma.tree import body_of, end, file_of, start

pytestmark = pytest.mark.e2e
SAME = b"source and target are the same "


def refused(ended: Ended, *names: str, what: bytes = b"file") -> None:
    """Assert exit status 1, and one line about each name."""
    assert ended.returncode == 1
    lines = [b"rdcp: %s: %s%s\n" % (name.encode(), SAME, what) for name in names]
    assert ended.stderr == b"".join(lines)


def identity(path: Path) -> tuple[int, int, int, bytes]:
    state = path.lstat()
    return state.st_ino, state.st_mtime_ns, state.st_nlink, path.read_bytes()


@pytest.fixture
def tools(near: Near) -> Tools:
    return near()


@pytest.fixture
def place(tools: Tools) -> Path:
    """A file f, and other paths to it."""
    (tools.place / "f").write_bytes(b"content")
    (tools.place / "link").symlink_to("f")
    (tools.place / "hard").hardlink_to(tools.place / "f")
    (tools.place / "dir").mkdir()
    (tools.place / "dir" / "f").symlink_to("../f")
    (tools.place / "here").symlink_to(".")
    return tools.place


@pytest.mark.parametrize("host", ["", "host1:"])
@pytest.mark.parametrize(
    "row",
    [
        ["f", "./f"],
        ["f", "."],
        ["f", "dir/../f"],
        ["f", "here/f"],
        ["f", "link"],
        ["f", "hard"],
        ["f", "dir"],
        ["link", "f"],
        ["hard", "f"],
        ["-r", "link", "f"],
        ["-r", "link", "./link"],
    ],
)
def test_file_onto_itself_is_refused(tools: Tools, place: Path, row: list[str], host: str) -> None:
    """The target is the file itself, by its own name, a symbolic or a hard link, and by SSH to
    this host."""
    before = facts(place), identity(place / "f")
    target = f"{host}{place}/{row[-1]}" if host else row[-1]
    ended = tools.run("rdcp", *row[:-1], target)
    shown = "f" if row[-1] in (".", "dir") else os.path.basename(row[-1])
    refused(ended, shown)
    assert (facts(place), identity(place / "f")) == before


def test_other_sources_are_copied(tools: Tools, place: Path) -> None:
    (place / "dir" / "g").write_bytes(b"g")
    (place / "dir" / "h").write_bytes(b"h")
    before = identity(place / "f")
    refused(tools.run("rdcp", "dir/g", "f", "dir/h", "."), "f")
    assert (place / "g").read_bytes() + (place / "h").read_bytes() == b"gh"
    assert identity(place / "f") == before


def test_same_file_within_tree_is_refused(tools: Tools, place: Path) -> None:
    for top in ("a", "b"):
        (place / top).mkdir()
    (place / "a" / "x").write_bytes(b"x")
    (place / "a" / "y").write_bytes(b"y")
    (place / "b" / "x").hardlink_to(place / "a" / "x")
    before = identity(place / "a" / "x")
    refused(tools.run("rdcp", "-r", "a/.", "b"), "x")
    assert (place / "b" / "y").read_bytes() == b"y"
    assert identity(place / "b" / "x") == before


def test_directory_onto_itself_is_refused(tools: Tools, place: Path) -> None:
    before = facts(place), (place / "dir").stat().st_ino
    refused(tools.run("rdcp", "-r", "dir", "."), "dir", what=b"directory")
    assert (facts(place), (place / "dir").stat().st_ino) == before


def test_link_replaces_link_to_same_file(tools: Tools, place: Path) -> None:
    """A link replaces a link without harm; so does a copy of a copy."""
    (place / "dir" / "link").symlink_to(place / "f")
    copied(tools.run("rdcp", "-r", "link", "dir"))
    assert os.readlink(place / "dir" / "link") == "f"
    copied(tools.run("rdcp", "f", "dir/copy"))
    copied(tools.run("rdcp", "f", "dir/copy"))
    assert (place / "dir" / "copy").read_bytes() == b"content"


@pytest.mark.parametrize("machine", ["this", "another", "unknown"])
def test_same_inode_on_other_machine_is_copied(tools: Tools, place: Path, machine: str) -> None:
    """Device and inode are equal by accident."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    if machine != "this":
        boot_id = boot_id[::-1] if machine == "another" else b""
    state = (place / "f").stat()
    stream = start(boot_id=boot_id) + file_of(3, b"f", state.st_dev, state.st_ino)
    stream += end() if machine == "this" else body_of(b"new") + end()
    ended = sink(tools, stream)
    if machine == "this":
        assert ended.returncode == SOME_FAILED
        assert ended.stderr == b"rdcp: f: %sfile\n" % SAME
    else:
        copied(ended)
    expected = b"content" if machine == "this" else b"new"
    assert (place / "f").read_bytes() == expected
