"""Part files of rdcp: what a cut copy leaves is resumed, replaced or removed by the next one."""

import fcntl
import os

import pytest
from testkit.harness import wait_for
from testkit.network.pipes import Tools

from tests.rdma.copy.test_rdcp import copied, facts

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("source", ["tree", "tree/."])
def test_cut_tree_copy_is_completed(tools: Tools, source: str) -> None:
    tree, copy = tools.place / "tree", tools.place / "copy"
    (tree / "a").mkdir(parents=True)
    (tree / "a" / "f").write_bytes(b"f")
    (tree / "d").mkdir()
    (tree / "d" / "big").write_bytes(os.urandom(8_000_000))
    (tree / "d").chmod(0o755)
    (tree / "a").chmod(0o2750)
    for when, folder in enumerate([tree / "a", tree / "d", tree]):
        os.utime(folder, ns=(1, 10**9 * when + 7))
    tools.cut(copy / "d" / ".big.rdcp-part", "-r", source, "copy")
    assert (copy / "d").stat().st_mode & 0o777 == 0o700  # no other user may look in yet
    ended = tools.run("rdcp", "-rv", source, "copy")
    copied(ended)
    assert b"2 files, 8000001 bytes" not in ended.stderr  # it went on
    (tree / "a").chmod(0o750)  # set-id bits are not kept
    os.utime(tree / "a", ns=(1, 7))
    assert facts(copy) == facts(tree)
    assert copy.stat().st_mode == tree.stat().st_mode
    assert copy.stat().st_mtime_ns == tree.stat().st_mtime_ns


def test_litter_of_concurrent_copy_is_removed_later(tools: Tools) -> None:
    """A folder that has its source's time is not read again, so it must not get that time yet."""
    tree, copy = tools.place / "tree", tools.place / "copy"
    (tree / "d").mkdir(parents=True)
    (tree / "d" / "f").write_bytes(b"f")
    copied(tools.run("rdcp", "-r", "tree/.", "copy"))
    (tree / "d" / "g").write_bytes(b"g")
    left = [copy / "d" / ".h.rdcp-part", copy / "d" / ".h.rdcp-from"]
    for path in left:
        path.write_bytes(b"h")
    with left[0].open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        copied(tools.run("rdcp", "-r", "tree/.", "copy"))
        assert all(path.exists() for path in left)
    copied(tools.run("rdcp", "-r", "tree/.", "copy"))
    assert not any(path.exists() for path in left)
    assert (copy / "d").stat().st_mtime_ns == (tree / "d").stat().st_mtime_ns


def test_cut_copy_of_long_name_resumes(tools: Tools) -> None:
    name = "é" * 127
    (tools.place / "tree").mkdir()
    data = os.urandom(8_000_000)
    (tools.place / "tree" / name).write_bytes(data)
    (tools.place / "to").mkdir()
    process = tools.start("rdcp", "--rate", "4M", "-r", "tree", "to")
    parts = (tools.place / "to").rglob
    wait_for(lambda: any(path.stat().st_size > 10**6 for path in parts(".*")), "no part")
    process.kill()
    process.communicate()
    tools.none_left()
    ended = tools.run("rdcp", "-rv", "tree", "to")
    copied(ended)
    assert (tools.place / "to" / "tree" / name).read_bytes() == data
    assert os.listdir(tools.place / "to" / "tree") == [name]
    assert b"1 files, " in ended.stderr
    assert b"1 files, 8000000 bytes" not in ended.stderr


@pytest.mark.parametrize("there", ["link", "hard link", "fifo", "another's", "own"])
def test_file_at_place_of_part_is_replaced(tools: Tools, there: str) -> None:
    part, other = tools.place / ".h.rdcp-part", tools.place / "other"
    (tools.place / "a").write_bytes(b"new")
    other.write_bytes(b"kept")
    if there == "link":
        part.symlink_to(other)
    elif there == "hard link":
        part.hardlink_to(other)
    elif there == "fifo":
        os.mkfifo(part)
    else:
        part.write_bytes(b"left over, and longer")
    anothers = there == "another's" and os.geteuid() == 0
    if anothers:
        os.chown(part, 1234, 1234)
    with (part if anothers else other).open("r+b") as held:
        copied(tools.run("rdcp", "a", "h"))
        held.write(b"!")  # a process that had it open cannot change the file
    assert (tools.place / "h").read_bytes() == b"new"
    assert other.read_bytes() == (b"kept" if anothers else b"!ept")
    assert sorted(os.listdir(tools.place)) == ["a", "h", "other"]


@pytest.mark.parametrize("there", ["folder", "locked"])
def test_unwritable_part_is_named(tools: Tools, there: str) -> None:
    part = tools.place / ".h.rdcp-part"
    (tools.place / "a").write_bytes(b"new")
    if there == "folder":
        part.mkdir()
        ended = tools.run("rdcp", "a", "h")
        why = b"Is a directory"
    else:
        with part.open("wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            ended = tools.run("rdcp", "a", "h")
        why = b"another rdcp is writing it"
    assert ended.returncode == 1
    assert b"rdcp: h: cannot write .h.rdcp-part: " + why in ended.stderr
    assert not (tools.place / "h").exists()


def test_part_without_note_is_removed(tools: Tools) -> None:
    (tools.place / "a").write_bytes(b"x" * (1 << 20))
    (tools.place / ".h.rdcp-from").mkdir()
    ended = tools.run("rdcp", "a", "h")
    assert ended.returncode == 1
    assert b"rdcp: h: cannot write .h.rdcp-part: " in ended.stderr
    assert sorted(os.listdir(tools.place)) == [".h.rdcp-from", "a"]


def test_note_of_longer_file_is_removed(tools: Tools) -> None:
    (tools.place / "a").write_bytes(b"short")
    (tools.place / ".h.rdcp-part").write_bytes(b"x" * 10**6)
    (tools.place / ".h.rdcp-from").write_bytes(b"2000000 1 1\nh")
    copied(tools.run("rdcp", "a", "h"))
    assert sorted(os.listdir(tools.place)) == ["a", "h"]
