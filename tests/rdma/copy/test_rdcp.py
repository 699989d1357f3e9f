"""rdcp between hosts that are all this machine, over SSH."""

import os
import socket
import stat
from pathlib import Path

import pytest
from testkit.network.pipes import Ended, Tools

pytestmark = pytest.mark.e2e

HOSTILE = ["two words", "new\nline", "-rf", "it's", '"q"', "$HOME", "`id`", "\\", "é", "~"]


def facts(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return kind and mode, time in ns, contents (or target) of every path below."""
    found = {}
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        what = b""
        if path.is_symlink():
            what = os.readlink(path).encode()
        elif path.is_file():
            what = path.read_bytes()
        when = 0 if path.is_symlink() else state.st_mtime_ns
        found[str(path.relative_to(folder))] = (state.st_mode, when, what)
    return found


def make_tree(folder: Path) -> None:
    for name in HOSTILE:
        (folder / "deep" / name).mkdir(parents=True)
        (folder / "deep" / name / name).write_bytes(name.encode())
    (folder / "empty").write_bytes(b"")
    (folder / "link").symlink_to("nowhere")
    (folder / "big").write_bytes(os.urandom(2_500_000))
    (folder / "big").chmod(0o750)
    os.utime(folder / "big", ns=(1, 987654321_123456789))
    os.utime(folder / "deep", ns=(1, 1_000_000_007))


def copied(ended: Ended) -> None:
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    ("source", "target"), [("", ""), ("host1:", ""), ("", "host1:"), ("h1:", "h2:")]
)
def test_tree_arrives_unchanged(tools: Tools, source: str, target: str) -> None:
    tree, copy = tools.place / "tree", tools.place / "copy"
    make_tree(tree)
    copied(tools.run("rdcp", "-r", "--verify", f"{source}{tree}", f"{target}{copy}"))
    assert facts(copy) == facts(tree)
    copied(tools.run("rdcp", "-r", f"{source}{tree}", f"{target}{copy}"))  # into it
    assert facts(copy / "tree") == facts(tree)


@pytest.mark.parametrize("name", HOSTILE)
def test_file_with_hostile_name_is_copied(tools: Tools, name: str) -> None:
    (tools.place / name).write_bytes(b"x")
    copied(tools.run("rdcp", "--", f"host1:{tools.place}/{name}", "copy"))
    assert (tools.place / "copy").read_bytes() == b"x"
    copied(tools.run("rdcp", "--", f"./{name}", f"host1:{tools.place}/{name}.2"))
    assert (tools.place / f"{name}.2").read_bytes() == b"x"


def test_slashes_as_in_cp(tools: Tools) -> None:
    place = tools.place
    (place / "a").mkdir()
    (place / "a" / "f").write_bytes(b"f")
    copied(tools.run("rdcp", "-r", "a/", "b/"))
    assert (place / "b" / "f").exists()  # b did not exist: a is named b
    copied(tools.run("rdcp", "-r", "a/", "b"))
    assert (place / "b" / "a" / "f").exists()  # b existed: into it
    copied(tools.run("rdcp", "-r", "a/.", "c"))
    assert (place / "c" / "f").exists()
    (place / "d").mkdir()
    copied(tools.run("rdcp", "-r", "a/.", "d"))
    assert (place / "d" / "f").exists()
    copied(tools.run("rdcp", "a/f", "d/"))
    assert tools.run("rdcp", "a/f", "absent/").returncode == 1
    assert not (place / "absent").exists()
    assert tools.run("rdcp", "a/f", "b/f", "absent").returncode == 1
    (place / "b" / "g").write_bytes(b"g")
    copied(tools.run("rdcp", "a/f", "b/g", "d"))
    assert sorted(os.listdir(place / "d")) == ["f", "g"]


def test_special_files_are_skipped_and_others_copied(tools: Tools) -> None:
    tree = tools.place / "tree"
    tree.mkdir()
    os.mkfifo(tree / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree / "sock"))
        (tree / "zz").write_bytes(b"rest")
        ended = tools.run("rdcp", "-r", "tree", f"host1:{tools.place}/copy")
    assert ended.returncode == 1
    assert ended.stderr.count(b"skipped: a device, a FIFO or a socket") == 2
    assert os.listdir(tools.place / "copy") == ["zz"]


@pytest.mark.soak
def test_holes_stay_holes(tools: Tools, soaking: bool) -> None:
    size = 5 << 30 if soaking else 64 << 20
    with (tools.place / "sparse").open("wb") as file:
        file.seek(size - 5_000_000)
        file.write(b"middle")
        file.truncate(size)
    row = ["--verify", "sparse", f"host1:{tools.place}/copy"]
    copied(tools.run("rdcp", *row, within_s=size / 20e6 + 30))
    state = (tools.place / "copy").stat()
    assert state.st_size == size
    assert state.st_blocks * 512 < 1_000_000
    with (tools.place / "copy").open("rb") as copy:
        copy.seek(size - 5_000_000)
        assert copy.read(9) == b"middle\0\0\0"


@pytest.mark.parametrize("host", ["", "host1:"])
def test_planted_links_are_not_followed(tools: Tools, host: str) -> None:
    tree, copy = tools.place / "tree", tools.place / "copy"
    outside = tools.place / "outside"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "f").write_bytes(b"evil")
    (tree / "g").write_bytes(b"new")
    (tree / "h").write_bytes(b"new")
    outside.mkdir()
    (outside / "g").write_bytes(b"kept")
    copy.mkdir()
    (copy / "sub").symlink_to(outside)
    (copy / "g").symlink_to(outside / "g")
    (copy / ".h.rdcp-part").symlink_to(outside / "g")
    ended = tools.run("rdcp", "-rv", "tree/.", f"{host}{copy}")
    assert ended.returncode == 1
    assert b"sub: " in ended.stderr
    assert os.listdir(outside) == ["g"]
    assert (outside / "g").read_bytes() == b"kept"
    assert (copy / "g").read_bytes() == b"new"
    assert not (copy / "g").is_symlink()
    assert (copy / "h").read_bytes() == b"new"


def test_fifo_or_directory_in_the_way_stays(tools: Tools) -> None:
    os.mkfifo(tools.place / "fifo")
    (tools.place / "dir" / "dir").mkdir(parents=True)
    (tools.place / "a").write_bytes(b"a")
    assert tools.run("rdcp", "a", "fifo").returncode == 1
    assert stat.S_ISFIFO((tools.place / "fifo").stat().st_mode)
    (tools.place / "x" / "a").mkdir(parents=True)
    assert tools.run("rdcp", "a", "x").returncode == 1
    assert (tools.place / "x" / "a").is_dir()


def test_resume_goes_on_where_it_ended(tools: Tools) -> None:
    data = os.urandom(8_000_000)
    (tools.place / "big").write_bytes(data)
    target = tools.place / "copy"
    part = tools.place / ".copy.rdcp-part"
    tools.cut(part, "big", f"host1:{target}")
    assert not target.exists()
    had = part.stat().st_size
    assert 0 < had < len(data)
    ended = tools.run("rdcp", "-v", "big", f"host1:{target}")
    copied(ended)
    assert target.read_bytes() == data
    assert f"1 files, {len(data) - had} bytes".encode() in ended.stderr
    assert sorted(os.listdir(tools.place)) == ["big", "copy"]


@pytest.mark.parametrize("fault", ["other bytes in the part", "another source"])
def test_resume_restarts_when_part_does_not_match(tools: Tools, fault: str) -> None:
    data = os.urandom(8_000_000)
    (tools.place / "big").write_bytes(data)
    target = tools.place / "copy"
    tools.cut(tools.place / ".copy.rdcp-part", "big", f"host1:{target}")
    if fault == "another source":
        data = os.urandom(8_000_000)
        (tools.place / "big").write_bytes(data)
    else:
        with (tools.place / ".copy.rdcp-part").open("r+b") as part:
            part.write(bytes([data[0] ^ 1]))
    ended = tools.run("rdcp", "-v", "big", f"host1:{target}")
    copied(ended)
    assert target.read_bytes() == data
    moved = int(ended.stderr.split(b"1 files, ")[1].split()[0])
    if fault == "another source":
        assert moved == len(data)
    else:  # the old bytes are in the file's hash: the damage is found, and all is sent
        assert b"rdcp: copy: arrived damaged: asked for again" in ended.stderr
        assert len(data) < moved < 2 * len(data)


def test_file_changed_while_read_fails_alone(tools: Tools) -> None:
    tree = tools.place / "tree"
    tree.mkdir()
    (tree / "a").write_bytes(os.urandom(8_000_000))
    (tree / "b").write_bytes(b"fine")
    process = tools.start("rdcp", "-r", "--rate", "4M", "tree", f"host1:{tools.place}/copy")
    tools.await_part(tools.place / "copy" / ".a.rdcp-part")
    with (tree / "a").open("r+b") as file:
        file.write(b"changed")
    _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    assert b"tree/a: it changed while it was read" in said
    assert os.listdir(tools.place / "copy") == ["b"]


def test_set_id_bits_are_not_kept(tools: Tools) -> None:
    (tools.place / "a").write_bytes(b"a")
    (tools.place / "a").chmod(0o6755)
    copied(tools.run("rdcp", "a", f"host1:{tools.place}/b"))
    assert (tools.place / "b").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("refused", [["a"], ["-ox:y", "b"], ["--", "-ox:y", "b"], []])
def test_bad_arguments_are_refused(tools: Tools, refused: list[str]) -> None:
    ended = tools.run("rdcp", *refused)
    assert ended.returncode == 2
    assert ended.stderr
