"""A signal ends rdsend in order before there is a stream, too, at once and with a message."""

import os
import signal
import socket
import time
from collections.abc import Iterator

import pytest
from testkit.network.pipes import SLOWNESS

from tests.rdma.ends import End, Ends

pytestmark = pytest.mark.e2e


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Take one connection and send no bytes; the next one is not even accepted."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        yield listener


def ends_by(sender: End, number: signal.Signals) -> None:
    time.sleep(0.2)
    since_s = time.monotonic()
    sender.kill(number)
    ended = sender.ended()
    assert time.monotonic() - since_s < 9.0 * SLOWNESS
    assert ended.status == 128 + number
    assert f"ended by signal {number:d}" in ended.err and ended.err.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_ends_rdsend_before_proof_of_peer(
    ends: Ends, silent: socket.socket, number: signal.Signals
) -> None:
    ends_by(ends.send("/etc/hostname", port=silent.getsockname()[1]), number)


def test_signal_ends_rdsend_while_it_connects(ends: Ends, silent: socket.socket) -> None:
    port = silent.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)):
        hosts = "127.0.0.1,127.0.0.2"  # the next one is not tried either
        ends_by(ends.send("/etc/hostname", host=hosts, port=port), signal.SIGTERM)


def test_signal_ends_rdsend_at_fifo_without_writer(ends: Ends, silent: socket.socket) -> None:
    """Before rdsend dials, no peer needs a message: the signal itself ends it."""
    os.mkfifo(ends.place / "fifo")
    sender = ends.send("fifo", port=silent.getsockname()[1])
    time.sleep(0.2)
    sender.kill(signal.SIGTERM)
    assert sender.ended(3).status == -signal.SIGTERM
