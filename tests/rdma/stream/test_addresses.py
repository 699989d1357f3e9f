"""Several addresses of one receiver, with a stranger at the first of them."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from testkit.network.pipes import SLOWNESS

from tests.rdma.ends import KEY, Ends
from tests.rdma.records import CREDIT, DONE, END, ENDING, PROOF, RECEIVER, Hello, record

pytestmark = pytest.mark.e2e
STRANGER = "127.0.0.1"
REAL = "127.0.0.2"
BOTH = f"{STRANGER},{REAL}"
HERE = ("--bind", REAL)


@contextlib.contextmanager
def stranger(port: int, says: bytes | None) -> Iterator[None]:
    """Listen on the receiver's port; send these bytes and hang up, or stay silent (None)."""
    held = []
    with socket.create_server((STRANGER, port)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):  # it was shut down
                while True:
                    taken, _ = server.accept()
                    held.append(taken)
                    if says is not None:
                        taken.sendall(says)
                        taken.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
    for taken in held:
        taken.close()
    assert held, "nobody tried the first address"


@pytest.mark.parametrize("says", [b"", b"SSH-2.0-x\r\n", bytes(5000), None])
def test_address_after_a_stranger_is_tried(ends: Ends, says: bytes | None) -> None:
    receiver = ends.receive(options=HERE)
    with stranger(ends.port, says):
        sent = ends.send("--", "echo", "x", options=["--connect-timeout", "4"], host=BOTH)
        ended = sent.ended()
    assert (ended.status, ended.err) == (0, "")
    assert receiver.ended().out == b"x\n"


def test_wrong_key_is_reported_despite_stranger_address(ends: Ends) -> None:
    ends.receive(options=HERE)
    other = b"another key of 16+"
    with stranger(ends.port, b"HTTP/1.1 400\r\n\r\n"):
        for host in BOTH, f"{REAL},{STRANGER}", f"{REAL},127.0.0.3":
            ended = ends.send("--", "touch", "ran", key=other, host=host).ended()
            assert ended.status == 1 and "both have the same key" in ended.err
    assert not (ends.place / "ran").exists()


def test_silent_strangers_do_not_outlast_the_limit(ends: Ends) -> None:
    ends.receive(options=HERE)
    with stranger(ends.port, None):
        since = time.monotonic()
        hosts = ",".join([STRANGER] * 3)
        words = ["--connect-timeout", "3"]
        ended = ends.send("--", "true", options=words, host=hosts).ended()
        took_s = time.monotonic() - since
    assert ended.status == 1 and "says nothing" in ended.err
    assert 2.5 < took_s < 20 * SLOWNESS


def test_sender_waits_for_late_proof_of_receiver(ends: Ends) -> None:
    """A receiver whose hello came in time has the rest of the time for its proof."""
    words = ["--connect-timeout", "4"]
    sender, peer = ends.send_to_peer("--", "true", options=words, host=BOTH)
    shared = peer.meet_as_receiver(KEY, Hello(RECEIVER, checksum=0))
    time.sleep(2.5)  # more than half of the time
    peer.send(record(PROOF, shared.proof(RECEIVER)))
    peer.send(record(CREDIT, number=4))
    peer.until(END)
    peer.send(record(DONE, ENDING.pack(0, 0)))
    assert sender.ended().status == 0
