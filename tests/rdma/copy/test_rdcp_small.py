"""Small files that replace no other: they appear only after they are verified."""

import os
import select

import pytest
from testkit.network.pipes import Tools

from tests.rdma.copy.test_rdcp_stream import SOME_FAILED, sink
from tests.rdma.tree import (
    LEAVE,
    PLACED,
    REFUSED,
    SEND,
    answers,
    body_of,
    end,
    enter,
    file_of,
    record,
    start,
)

pytestmark = pytest.mark.e2e
DATA = b"small" * 200
BODY = body_of(DATA)
JUDGED = BODY[:-1]
"""Content with all but the last byte of its hash."""
BEGUN = start() + enter(b"d") + file_of(len(DATA))
OVER = record(LEAVE) + end()


class Sink:
    """A sink that is fed piece by piece."""

    def __init__(self, tools: Tools) -> None:
        self.process = tools.start("rdcp", "--serve-sink", "--no-sync", ".")
        self.said = b""

    def feed(self, stream: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(stream)
        self.process.stdin.flush()

    def await_answer(self, verdict: int) -> None:
        """Wait until the last answer is this verdict."""
        assert self.process.stdout
        while [row[2] for row in answers(self.said)][-1:] != [verdict]:
            assert select.select([self.process.stdout], [], [], 20)[0], self.said
            some = os.read(self.process.stdout.fileno(), 1 << 16)
            assert some, self.process.communicate()
            self.said += some

    def ended(self) -> int:
        self.process.communicate(timeout=20)
        return self.process.returncode


def test_unverified_file_leaves_no_trace(tools: Tools) -> None:
    killed = Sink(tools)
    killed.feed(BEGUN + JUDGED)
    killed.await_answer(SEND)
    assert os.listdir(tools.place / "d") == []
    killed.process.kill()
    killed.ended()
    assert os.listdir(tools.place / "d") == []


def test_file_created_meanwhile_is_replaced(tools: Tools) -> None:
    """A file that another process has put there is replaced, as if it had been there before."""
    late = Sink(tools)
    late.feed(BEGUN)
    late.await_answer(SEND)
    (tools.place / "d" / "f").write_bytes(b"another's")
    late.feed(BODY + OVER)
    late.await_answer(PLACED)
    assert late.ended() == 0
    assert (tools.place / "d" / "f").read_bytes() == DATA
    assert os.listdir(tools.place / "d") == ["f"]


def test_second_file_of_same_name_is_refused(tools: Tools) -> None:
    stream = BEGUN + file_of(5) + BODY + body_of(b"other", 1) + OVER
    ended = sink(tools, stream)
    assert ended.returncode == SOME_FAILED
    assert b"d/f: another source had that name: it is not replaced" in ended.stderr
    assert [row[2] for row in answers(ended.stdout)][-2:] == [PLACED, REFUSED]
    assert (tools.place / "d" / "f").read_bytes() == DATA


def test_first_of_same_named_files_stays(tools: Tools) -> None:
    """The result is the same in any order of the threads."""
    for which in "ab":
        (tools.place / which / "d").mkdir(parents=True)
        for number in range(300):
            (tools.place / which / "d" / str(number)).write_text(which)
    (tools.place / "to").mkdir()
    ended = tools.run("rdcp", "-r", "a/d", "b/d", "to")
    assert ended.returncode == 1
    refused = b"another source had that name: it is not replaced"
    assert ended.stderr.count(refused) == 300
    copies = sorted((tools.place / "to" / "d").iterdir())
    assert [path.read_text() for path in copies] == ["a"] * 300
