"""The tools while each of their threads is interrupted without end (tests/storm.c)."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.network.pipes import Tools
from testkit.network.sshd import Sshd

from tests.rdma.ends import Ends

pytestmark = pytest.mark.e2e
BYTES = 20_000_000


@pytest.fixture
def ends(storm: Path, tmp_path: Path) -> Iterator[Ends]:
    with contextlib.closing(Ends(storm, tmp_path)) as pair:
        yield pair


@pytest.fixture
def tools(storm: Path, sshd: Sshd, tmp_path: Path) -> Iterator[Tools]:
    with contextlib.closing(Tools(storm, sshd, tmp_path)) as running:
        yield running


@pytest.mark.parametrize("options", [["--rate", "20M"], ["--checksum", "none"], ["--encrypt"]])
def test_interrupted_file_to_file(ends: Ends, options: list[str]) -> None:
    data = os.urandom(BYTES)
    (ends.place / "in").write_bytes(data)
    theirs = [word for word in options if word not in ("--rate", "20M")]
    receiver = ends.receive("out", options=[*theirs, "--sync"])
    assert ends.send("in", options=options).ended().status == 0
    assert receiver.ended().status == 0
    assert (ends.place / "out").read_bytes() == data


def test_interrupted_fifo_to_pipe(ends: Ends) -> None:
    """rdsend first waits for the writer of its FIFO."""
    data = os.urandom(BYTES)
    os.mkfifo(ends.place / "in")
    receiver = ends.receive()
    sender = ends.send("in")

    def write() -> None:
        with (ends.place / "in").open("wb") as writer:
            writer.write(data)

    timer = threading.Timer(0.3, write)
    timer.start()
    ended = receiver.ended()
    assert (ended.status, ended.out == data) == (0, True)
    assert sender.ended().status == 0
    timer.join()


def test_interrupted_command_to_command(ends: Ends) -> None:
    receiver = ends.receive("--", "sh", "-c", "sleep 0.5; cksum")
    sender = ends.send("--", "sh", "-c", f"sleep 0.5; head -c {BYTES} /dev/zero")
    assert sender.ended().status == 0
    assert receiver.ended().out.split() == [b"717186274", b"20000000"]


def test_interrupted_chain_keeps_data_and_status(tools: Tools) -> None:
    ended = tools.run("rdpipe", "host1:cat", "host2:cat", "rev", stdin=b"abc\n" * 90000)
    assert (ended.returncode, ended.stdout) == (0, b"cba\n" * 90000), ended.stderr
    ended = tools.run("rdpipe", "host1:echo; exit 3", "host2:cat")
    assert ended.returncode == 3, ended.stderr


def test_interrupted_tree_copy(tools: Tools) -> None:
    tree = tools.place / "tree"
    (tree / "deep").mkdir(parents=True)
    (tree / "big").write_bytes(os.urandom(BYTES))
    for number in range(50):
        (tree / "deep" / str(number)).write_bytes(bytes([number]) * number)
    ended = tools.run("rdcp", "-r", "--verify", "tree", f"host1:{tools.place}/copy")
    assert ended.returncode == 0, ended.stderr
    for path in tree.rglob("*"):
        copy = tools.place / "copy" / path.relative_to(tree)
        assert path.is_dir() or copy.read_bytes() == path.read_bytes()
