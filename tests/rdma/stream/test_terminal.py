"""rdsend at a terminal: stdin is a terminal, and stderr shows the progress."""

import os
import time

import pytest

from tests.rdma.ends import Ends

pytestmark = pytest.mark.e2e


def test_lines_are_sent_as_they_are_typed_until_ctrl_d(ends: Ends) -> None:
    receiver = ends.receive()
    terminal = ends.sit()
    assert receiver.process.stdout
    for line in (b"one\n", b"two\n"):
        terminal.types(line)
        assert os.read(receiver.process.stdout.fileno(), 100) == line
    terminal.types(b"\x04")
    assert terminal.ended() == 0
    assert receiver.ended().status == 0


@pytest.mark.parametrize("typed", [b"", b"half a line"])
def test_ctrl_c_ends_both_ends_without_a_file(ends: Ends, typed: bytes) -> None:
    receiver = ends.receive("out")
    terminal = ends.sit(options=["-v"])
    terminal.awaits(b"sending to")
    terminal.types(typed + b"\x03")
    assert terminal.ended() == 130
    ended = receiver.ended(3)
    assert ended.status == 1 and "signal 2" in ended.err
    assert list(ends.place.iterdir()) == []


def test_ctrl_c_while_it_waits_for_the_receiver(ends: Ends) -> None:
    receiver = ends.receive("out")
    receiver.kill(19)  # SIGSTOP: connections are accepted, but no bytes are sent
    terminal = ends.sit()
    time.sleep(0.5)
    terminal.types(b"\x03")
    assert terminal.ended() in (130, -2)
    receiver.kill()


def test_progress_has_a_rate_and_the_time_left(ends: Ends) -> None:
    (ends.place / "in").write_bytes(bytes(8_000_000))
    receiver = ends.receive("/dev/null")
    terminal = ends.sit("in", options=["-v", "--rate", "4M"])
    assert terminal.ended() == 0 and receiver.ended().status == 0
    for word in (b"MB/s, ", b" %, ", b" s left", b"Bandwidth"):
        assert word in terminal.shown


def test_option_no_progress_keeps_verbose_summary(ends: Ends) -> None:
    (ends.place / "in").write_bytes(bytes(4_000_000))
    receiver = ends.receive("/dev/null")
    terminal = ends.sit("in", options=["-v", "--no-progress", "--rate", "4M"])
    assert terminal.ended() == 0 and receiver.ended().status == 0
    assert b"\x1b" not in terminal.shown and b"Bandwidth" in terminal.shown
