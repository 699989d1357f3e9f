"""rdcp on one machine: kept names, modes and times, and sources refused with the reason."""

import os
import platform
from errno import EPERM

import pytest
from testkit.network.pipes import Tools

from tests.rdma.copy.test_rdcp import copied, facts
from tests.rdma.kernel import without

pytestmark = pytest.mark.e2e
UTIMENSAT = {"x86_64": 280, "aarch64": 88}[platform.machine()]


def test_existing_folder_keeps_its_mode(tools: Tools) -> None:
    (tools.place / "a" / "d").mkdir(parents=True)
    (tools.place / "a" / "d" / "f").write_bytes(b"f")
    (tools.place / "b" / "d").mkdir(parents=True)
    (tools.place / "b").chmod(0o711)
    (tools.place / "b" / "d").chmod(0o710)
    copied(tools.run("rdcp", "-r", "a/.", "b"))
    assert (tools.place / "b" / "d" / "f").exists()
    assert (tools.place / "b").stat().st_mode & 0o7777 == 0o711
    assert (tools.place / "b" / "d").stat().st_mode & 0o7777 == 0o710


def test_files_whose_time_was_not_kept_are_named(tools: Tools) -> None:
    (tools.place / "d").mkdir()
    (tools.place / "d" / "a").write_bytes(b"a")
    ended = tools.run("rdcp", "-r", "d", "copy", before=without(UTIMENSAT, EPERM))
    assert ended.returncode == 1
    for name in ("copy/a", "copy"):
        said = f"rdcp: {name}: arrived, but its time could not be kept: "
        assert said.encode() in ended.stderr
    assert (tools.place / "copy" / "a").read_bytes() == b"a"


def test_time_before_1970_keeps_its_fraction(tools: Tools) -> None:
    (tools.place / "a").write_bytes(b"a")
    os.utime(tools.place / "a", ns=(1, -1_500_000_000))
    copied(tools.run("rdcp", "a", "b"))
    assert (tools.place / "b").stat().st_mtime_ns == -1_500_000_000


def test_half_a_megabyte_of_source_names_is_copied(tools: Tools) -> None:
    names = [f"{i:04}" + "n" * 196 for i in range(2600)]
    (tools.place / "a").mkdir()
    (tools.place / "b").mkdir()
    for name in names:
        (tools.place / "a" / name).touch()
    ended = tools.run("rdcp", "-v", *(f"a/{name}" for name in names), "b")
    copied(ended)
    assert sorted(os.listdir(tools.place / "b")) == names
    assert ended.stderr.count(b" files, 0 bytes") == 1


@pytest.mark.parametrize("option", ["-v", "--verbose"])
def test_verbose_reports_files_and_bytes(tools: Tools, option: str) -> None:
    (tools.place / "a").write_bytes(b"abc")
    ended = tools.run("rdcp", option, "a", "b")
    copied(ended)
    assert b"rdcp: 1 files, 3 bytes" in ended.stderr


def test_leading_colon_makes_name_local(tools: Tools) -> None:
    (tools.place / "a:b").write_bytes(b"local")
    copied(tools.run("rdcp", ":a:b", ":c:d"))
    assert (tools.place / "c:d").read_bytes() == b"local"


@pytest.mark.parametrize("row", [["", "b"], ["-r", "a", ""], ["-r", ":", "b"]])
def test_empty_name_is_refused(tools: Tools, row: list[str]) -> None:
    (tools.place / "a").mkdir()
    ended = tools.run("rdcp", *row)
    assert ended.returncode == 2
    assert b"an empty name" in ended.stderr
    assert os.listdir(tools.place) == ["a"]


def test_source_does_not_replace_file_of_other_source(tools: Tools) -> None:
    place = tools.place
    for top in ("a", "b"):
        (place / top / "d").mkdir(parents=True)
        (place / top / "f").write_bytes(top.encode())
        (place / top / "d" / top).write_bytes(top.encode())
        (place / top / "d" / "both").write_bytes(top.encode())
    (place / "to").mkdir()
    (place / "to" / "f").write_bytes(b"old")
    ended = tools.run("rdcp", "a/f", "b/f", "to")
    assert ended.returncode == 1
    assert b"rdcp: f: another source had that name" in ended.stderr
    assert (place / "to" / "f").read_bytes() == b"a"
    ended = tools.run("rdcp", "-r", "a/d", "b/d", "to")  # as cp: folders are merged
    assert ended.returncode == 1
    assert ended.stderr.count(b"another source had that name") == 1
    assert b"rdcp: d/both: " in ended.stderr
    merged = {p.name: p.read_bytes() for p in (place / "to" / "d").iterdir()}
    assert merged == {"a": b"a", "b": b"b", "both": b"a"}


@pytest.mark.parametrize("row", [["h1:a", "h2:b"], ["h1:a", "b"], ["a", "b", "h2:a"]])
def test_sources_on_two_machines_are_refused(tools: Tools, row: list[str]) -> None:
    ended = tools.run("rdcp", *row, "to")
    assert ended.returncode == 2
    said = f'rdcp: "{row[-1]}": not on the machine of the first source: run rdcp once for each'
    assert ended.stderr.decode() == f"{said} machine\n"


@pytest.mark.parametrize("target", ["dir/sub", "dir/new", "dir", "link/sub"])
def test_directory_is_not_copied_into_itself(tools: Tools, target: str) -> None:
    sub = tools.place / "dir" / "sub"
    sub.mkdir(parents=True)
    (tools.place / "dir" / "f").write_bytes(b"f")
    (tools.place / "link").symlink_to("dir")
    ended = tools.run("rdcp", "-r", "dir", target)
    assert ended.returncode == 1
    assert ended.stderr.count(b": a directory cannot be copied into itself") == 1
    below = sub / "dir" if "sub" in target else None
    found = sorted(path for path in (tools.place / "dir").rglob("*") if path != below)
    expected = [below / "f"] if below else []
    assert found == sorted([tools.place / "dir" / "f", sub, *expected])


@pytest.mark.parametrize("length", [244, 245, 255])
def test_longest_names_are_copied(tools: Tools, length: int) -> None:
    tree = tools.place / "tree"
    tree.mkdir()
    (tree / ("n" * length)).write_bytes(b"n")
    (tree / ("l" * length)).symlink_to("nowhere")
    (tree / "d" / ("m" * length)).mkdir(parents=True)
    copied(tools.run("rdcp", "-r", "tree", "copy"))
    assert facts(tools.place / "copy") == facts(tree)


def test_too_deep_tree_fails_alone(tools: Tools) -> None:
    folder = tools.place / "tree"
    folder.mkdir()
    (folder / "beside").write_bytes(b"b")
    names, above = ["d"] * 520, os.open(folder, os.O_RDONLY)
    for name in names:
        os.mkdir(name, dir_fd=above)
        below = os.open(name, os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = below
    os.close(above)
    ended = tools.run("rdcp", "-r", "tree", "copy")
    assert ended.returncode == 1
    assert ended.stderr.count(b"\n") == 1 and b"too deep" in ended.stderr
    assert (tools.place / "copy" / "beside").exists()
    deepest = tools.place.joinpath("copy", *names[:499])
    assert deepest.is_dir() and not any(deepest.iterdir())
