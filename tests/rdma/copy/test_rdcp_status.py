"""Exit status of rdcp: a signal ends all of it; any other fault gives a 1, with a line."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.pipes import Tools

from tests.rdma.near import NearSsh

pytestmark = pytest.mark.e2e
FAILS = '[ "$1" != gone ] || exit 255\n'


@pytest.fixture
def tools(rdma_tools: Path, tmp_path: Path) -> Iterator[Tools]:
    running = Tools(rdma_tools, NearSsh(tmp_path, FAILS), tmp_path)
    yield running
    running.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_rdcp_with_its_number(tools: Tools, number: signal.Signals) -> None:
    (tools.place / "big").write_bytes(os.urandom(8_000_000))
    process = tools.start("rdcp", "--rate", "1M", "host1:big", "copy")
    part = tools.place / ".copy.rdcp-part"
    until = time.monotonic() + 20
    while not part.exists():
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == 128 + number


def test_unreachable_home_is_named(tools: Tools) -> None:
    ended = tools.run("rdcp", "-r", "gone:", "to")
    assert ended.returncode == 1
    assert ended.stderr == b"rdcp: segment 1 (gone:): no session: ssh ended with status 255\n"


def test_missing_remote_tools_are_reported(tools: Tools) -> None:
    ended = tools.run("rdcp", "--remote-path", "/no/where", "host1:x", "to")
    assert ended.returncode == 1
    assert b"no rdpipe found there" in ended.stderr


def test_invalid_option_value_is_bad_usage(tools: Tools) -> None:
    (tools.place / "x").touch()
    ended = tools.run("rdcp", "--chunk", "none", "x", "host1:y")
    assert ended.returncode == 2
    assert b'--chunk "none"' in ended.stderr


def test_verbose_names_hop_and_transport(tools: Tools) -> None:
    (tools.place / "a").write_bytes(b"a")
    ended = tools.run("rdcp", "-v", "a", "host1:b")
    assert ended.returncode == 0, ended.stderr
    assert b"hop 1: sending to" in ended.stderr
    assert b"hop 2" not in ended.stderr
    assert b" over tcp" in ended.stderr
