"""Exit status of rdcp: a signal ends all of it; any other fault gives a 1, with a line."""

import os
import signal

import pytest
from testkit.network.pipes import Tools

from tests.rdma.near import Near

pytestmark = pytest.mark.e2e
FAILS = '[ "$1" != gone ] || exit 255\n'


@pytest.fixture
def tools(near: Near) -> Tools:
    return near(FAILS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_rdcp_with_its_number(tools: Tools, number: signal.Signals) -> None:
    (tools.place / "big").write_bytes(os.urandom(8_000_000))
    process = tools.start("rdcp", "--rate", "1M", "host1:big", "copy")
    tools.await_part(tools.place / ".copy.rdcp-part")
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == 128 + number


def test_unreachable_home_is_named(tools: Tools) -> None:
    ended = tools.run("rdcp", "-r", "gone:", "to")
    assert ended.returncode == 1
    assert ended.stderr == b"rdcp: segment 1 (gone:): no session: ssh ended with status 255\n"


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
