"""Streams of rdcp's two sides: refused with the reason, walked ahead, answered."""

import os
import resource
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from testkit.network.pipes import Ended, Tools

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


def sink(tools: Tools, stream: bytes) -> Ended:
    return tools.run("rdcp", "--serve-sink", "--no-sync", ".", stdin=stream)


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


def test_sink_refuses_tree_deeper_than_source_sends(tools: Tools) -> None:
    ended = sink(tools, start() + enter(b"d") * 600)
    assert b"more folders within each other than this rdcp sends" in ended.stderr


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
