"""Several targets of one pipe: each gets all of it, or its loss is reported."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rdma.near import NearSsh
from tests.rdma.running import Tools

pytestmark = pytest.mark.e2e
SIZE = 5_000_000
MORE = 100_000_000
"""More than a window and the buffers of pipes and sockets."""


@pytest.fixture
def tools(rdma_tools: Path, tmp_path: Path) -> Iterator[Tools]:
    (tmp_path / "place").mkdir()
    running = Tools(rdma_tools, NearSsh(tmp_path), tmp_path / "place")
    yield running
    running.close()


@pytest.mark.parametrize("first", [[], ["host1:cat"], ["host1:cat", "cat"]])
def test_targets_get_complete_data(tools: Tools, first: list[str]) -> None:
    data = os.urandom(SIZE)
    ended = tools.run("rdpipe", *first, "b:>one|c:cat >two|d:cat >three", stdin=data)
    assert (ended.returncode, ended.stderr) == (0, b"")
    for name in ("one", "two", "three"):
        assert (tools.place / name).read_bytes() == data


def test_segment_before_targets_runs_once(tools: Tools) -> None:
    ended = tools.run("rdpipe", "a:echo x >>ran; echo y", "b:cat|c:cat")
    assert (ended.returncode, ended.stdout) == (0, b"y\ny\n"), ended.stderr
    assert (tools.place / "ran").read_bytes() == b"x\n"


def test_failed_and_complete_targets_are_reported(tools: Tools) -> None:
    ended = tools.run("rdpipe", "b:cat >/dev/null; exit 5|c:wc -c", stdin=b"x" * SIZE)
    assert (ended.returncode, int(ended.stdout)) == (5, SIZE)
    assert b"b:cat >/dev/null; exit 5: failed, status 5\n" in ended.stderr
    assert b"c:wc -c: all of it arrived\n" in ended.stderr


def test_target_that_leaves_early_does_not_stop_others(tools: Tools) -> None:
    ended = tools.run("rdpipe", "b:head -c 1|c:wc -c", stdin=b"x" * SIZE)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.replace(b"x", b"").strip() == b"%d" % SIZE


def test_failed_producer_shows_targets_no_end(tools: Tools) -> None:
    """A producer that failed ends the targets; no target sees an end of its input."""
    ended = tools.run("rdpipe", "a:echo x; exit 3", "b:cat && echo >one|c:cat && echo >two")
    assert ended.returncode == 3
    assert os.listdir(tools.place) == []


def test_target_too_far_behind_is_dropped(tools: Tools) -> None:
    slow = "c:exec sleep 1000|b:wc -c"
    ended = tools.run("rdpipe", f"a:head -c {MORE} /dev/zero", slow, within_s=60)
    assert (ended.returncode, int(ended.stdout)) == (1, MORE)
    assert b"c:exec sleep 1000: was let go: 64 MiB behind" in ended.stderr


def test_option_wait_keeps_slow_target(tools: Tools) -> None:
    slow = "c:while [ ! -e go ]; do sleep 0.05; done; wc -c|b:head -c 1; echo >go; wc -c"
    words = ["--wait", f"a:head -c {MORE} /dev/zero", slow]
    ended = tools.run("rdpipe", *words, within_s=60)
    assert ended.returncode == 0, ended.stderr
    assert sum(map(int, ended.stdout.strip(b"\0").split())) == 2 * MORE - 1


@pytest.mark.parametrize("command", ["grep -cE 'x|b:x'", 'grep -cE "x|b:x"', "grep -cE x\\|b:x"])
def test_bar_within_quotes_is_no_target_separator(tools: Tools, command: str) -> None:
    ended = tools.run("rdpipe", f"a:{command}", stdin=b"x\nb:x\ny\n")
    assert (ended.returncode, ended.stdout) == (0, b"2\n"), ended.stderr


def test_terminated_tee_leaves_no_process(tools: Tools) -> None:
    process = tools.start("rdpipe", "a:cat", "b:sleep 1001|c:sleep 1002")
    for seconds in ("1001", "1002"):
        tools.await_words("sleep", seconds)
    process.terminate()
    process.communicate(timeout=20)
    assert process.returncode == 128 + 15
    tools.none_left()
