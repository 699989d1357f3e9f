"""rdcp on one machine: files kept, files refused with the reason, and files left by a cut copy."""

import fcntl
import os
import platform
import resource
import signal
import subprocess
import threading
import time
from errno import EPERM
from pathlib import Path

import pytest

from tests.rdma.copy.test_rdcp import copied, facts
from tests.rdma.kernel import without
from tests.rdma.running import Ended, Tools
from tests.rdma.tree import (
    ANSWER,
    BYE,
    ENTER,
    FILE,
    LEAVE,
    REFUSED,
    SEND,
    START,
    START_OF_7,
    TARGET,
    WHOLE,
    answers,
    body_of,
    end,
    enter,
    file_of,
    numbers,
    record,
    records,
    start,
)

pytestmark = pytest.mark.e2e

SOME_FAILED, IN_VAIN = 4, 5
UTIMENSAT = {"x86_64": 280, "aarch64": 88}[platform.machine()]


def sink(tools: Tools, stream: bytes) -> Ended:
    return tools.run("rdcp", "--serve-sink", "--no-sync", ".", stdin=stream)


def cut(tools: Tools, part: Path, *arguments: str) -> None:
    """Start a copy, and kill it when the part has some bytes of its file."""
    process = tools.start("rdcp", "--rate", "4M", *arguments)
    until = time.monotonic() + 20
    while not (part.exists() and part.stat().st_size > 1_000_000):
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    tools.none_left()


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
    cut(tools, copy / "d" / ".big.rdcp-part", "-r", source, "copy")
    assert (copy / "d").stat().st_mode & 0o777 == 0o700  # no other user may look in yet
    ended = tools.run("rdcp", "-rv", source, "copy")
    copied(ended)
    assert b"2 files, 8000001 bytes" not in ended.stderr  # it went on
    (tree / "a").chmod(0o750)  # set-id bits are not kept
    os.utime(tree / "a", ns=(1, 7))
    assert facts(copy) == facts(tree)
    assert copy.stat().st_mode == tree.stat().st_mode
    assert copy.stat().st_mtime_ns == tree.stat().st_mtime_ns


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


@pytest.mark.parametrize(
    ("stream", "why"),
    [
        (b"", "it ends before its end"),
        (start(9), "is version 9, this rdcp knows 8: install the same release on both"),
        (START_OF_7, "is of another release"),
        (end(), "does not say its version"),
        (start() + start(), "a record of another kind of stream"),
        (start() + record(LEAVE), "it leaves a folder that it did not enter"),
        (start() + enter(b"d") * 2, "it ends before its end"),
        (start() + enter(b"d") + end(), "it ends within a folder"),
        (start() + file_of(1) + end(), "it ends before its last file"),
        (start() + enter(b"d") + enter(b""), "a folder below DST without a name"),
        (start() + record(BYE), "a record of another kind of stream"),
        (start() + record(WHOLE), "a record where it does not belong"),
        (start() + body_of(b"x"), "a body that was not asked for"),
        (start() + file_of(1) + body_of(b"x", 1), "a body that was not asked for"),
        (start() + file_of(1)[:-2], "it ends within a record"),
        (start() + record(99), "a record of no known kind"),
        (start() + b"\xff" * 16, "a record that was damaged on its way"),
        (start() + file_of(1)[:-1] + b"g", "a record that was damaged on its way"),
        (start() + file_of(1) + body_of(b"xy", size=1), "data where it does not belong"),
    ],
)
def test_sink_reports_refused_stream(tools: Tools, stream: bytes, why: str) -> None:
    ended = sink(tools, stream)
    assert ended.returncode == (IN_VAIN if "is version" in why else 1)
    assert ended.stderr.startswith(b"rdcp: the stream") and why.encode() in ended.stderr
    assert ended.stderr.count(b"\n") == 1


def test_source_reports_sink_of_other_release(tools: Tools) -> None:
    ended = tools.run("rdcp", "--serve-source", "a", stdin=START_OF_7)
    assert ended.returncode == 1
    assert b"is of another release" in ended.stderr


def walked_ahead(tools: Tools) -> "subprocess.Popen[bytes]":
    """Start a source of a tree that has no target yet; wait until it has walked the tree all the
    same."""
    (tools.place / "tree" / "sub").mkdir(parents=True)
    (tools.place / "tree" / "a").write_bytes(b"a")
    source = tools.start("rdcp", "--serve-source", "-r", "./tree")
    assert source.stdout
    head = os.read(source.stdout.fileno(), 4096)
    assert [kind for kind, _, _ in records(head)] == [START]
    state = Path(f"/proc/{source.pid}/stat")
    until = time.monotonic() + 20
    while state.read_text().rpartition(") ")[2][0] != "S":  # it waits for the sink
        assert time.monotonic() < until
    (tools.place / "tree" / "b").write_bytes(b"b")
    return source


def names_told(source: "subprocess.Popen[bytes]", target: bytes) -> list[bytes]:
    """Return the names that the source announces, once it has received the target."""
    assert source.stdin and source.stdout
    source.stdin.write(target)
    source.stdin.flush()
    told, leaves = b"", 0
    while not leaves or leaves < [kind for kind, _, _ in records(told)].count(ENTER):
        told += os.read(source.stdout.fileno(), 4096)
        leaves = [kind for kind, _, _ in records(told)].count(LEAVE)
    return [name for kind, _, name in records(told) if kind in (ENTER, FILE)]


def test_walk_begins_before_sink_answers(tools: Tools) -> None:
    source = walked_ahead(tools)
    assert names_told(source, record(TARGET)) == [b"tree", b"a", b"sub"]


def test_walk_that_met_its_target_restarts(tools: Tools) -> None:
    source = walked_ahead(tools)
    target = (tools.place / "tree" / "sub").stat()
    told = names_told(source, record(TARGET, numbers(target.st_dev, target.st_ino)))
    assert told == [b"tree", b"a", b"b"]
    _, said = source.communicate()
    assert said == b"rdcp: tree/sub: a directory cannot be copied into itself\n"


def test_source_takes_answers_while_its_output_is_unread(tools: Tools) -> None:
    """Each side would otherwise wait for the other: a sink that places files answers for
    each."""
    files = 20_000
    (tools.place / "tree").mkdir()
    for number in range(files):
        (tools.place / "tree" / str(number)).write_bytes(b"content")
    source = tools.start("rdcp", "--serve-source", "-r", "./tree")
    assert source.stdin and source.stdout
    source.stdin.write(record(TARGET))
    source.stdin.flush()
    said = b""
    while not said.endswith(record(LEAVE)):  # all are announced
        said += os.read(source.stdout.fileno(), 1 << 20)
    asked = [record(ANSWER, numbers(number, 1, SEND)) for number in range(files)]
    writing = threading.Thread(target=source.stdin.write, args=(b"".join(asked),), daemon=True)
    writing.start()
    writing.join(20.0)
    assert not writing.is_alive()
    source.kill()


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
    said = f'rdcp: "{row[0]}" and "{row[-1]}": sources on two machines: run rdcp once for each'
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


def test_cut_copy_of_long_name_resumes(tools: Tools) -> None:
    name = "é" * 127
    (tools.place / "tree").mkdir()
    data = os.urandom(8_000_000)
    (tools.place / "tree" / name).write_bytes(data)
    (tools.place / "to").mkdir()
    process = tools.start("rdcp", "--rate", "4M", "-r", "tree", "to")
    until = time.monotonic() + 20
    while not any(p.stat().st_size > 10**6 for p in (tools.place / "to").rglob(".*")):
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.02)
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


def test_sink_refuses_tree_deeper_than_source_sends(tools: Tools) -> None:
    ended = sink(tools, start() + enter(b"d") * 600)
    assert b"more folders within each other than this rdcp sends" in ended.stderr


def test_note_of_longer_file_is_removed(tools: Tools) -> None:
    (tools.place / "a").write_bytes(b"short")
    (tools.place / ".h.rdcp-part").write_bytes(b"x" * 10**6)
    (tools.place / ".h.rdcp-from").write_bytes(b"2000000 1 1\nh")
    copied(tools.run("rdcp", "a", "h"))
    assert sorted(os.listdir(tools.place)) == ["a", "h"]


@pytest.mark.parametrize("size", [200_000, 2_000_000])
def test_failed_write_leaves_only_old_file(tools: Tools, size: int) -> None:
    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    (tools.place / "f").write_bytes(b"old")
    stream = start() + file_of(size) + body_of(bytes(size)) + end()
    row = ["--serve-sink", "--no-sync", "."]
    ended = tools.run("rdcp", *row, stdin=stream, before=limited)
    assert ended.returncode == SOME_FAILED
    assert b"rdcp: f: File too large" in ended.stderr
    assert answers(ended.stdout)[-1][2] == REFUSED
    assert os.listdir(tools.place) == ["f"]
    assert (tools.place / "f").read_bytes() == b"old"
