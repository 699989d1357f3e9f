"""rdpipe at a terminal: typed input goes to the program that asked for it."""

import contextlib
import os
import signal
import time

import pytest
from testkit.network.pipes import Tools

from tests.rdma.near import ASKS, Near, Sit

pytestmark = pytest.mark.e2e


@pytest.fixture
def tools(near: Near) -> Tools:
    return near(ASKS)


def test_password_goes_to_ssh_alone(sit: Sit, tools: Tools) -> None:
    seat = sit("rdpipe", "host1:cat >got")
    seat.awaits(b"password of host1: ")
    seat.types(b"secret\n")
    tools.pid_of("rdrecv\0")  # it stands
    seat.types(b"data\n\x04")
    assert seat.ended() == 0, seat.shown
    assert (tools.place / "asked").read_text() == "host1 secret\n"
    assert (tools.place / "got").read_bytes() == b"data\n"


def test_passwords_are_asked_for_in_turn(sit: Sit, tools: Tools) -> None:
    seat = sit("rdpipe", "host1:cat", "host2:cat >got")
    seat.awaits(b"password of host1: ")
    assert b"host2" not in seat.shown
    seat.types(b"one\n")
    seat.awaits(b"password of host2: ")
    seat.types(b"two\n")
    tools.pid_of("rdrecv\0", "cat >got")
    seat.types(b"data\n\x04")
    assert seat.ended() == 0, seat.shown
    assert (tools.place / "asked").read_text() == "host1 one\nhost2 two\n"
    assert (tools.place / "got").read_bytes() == b"data\n"


def test_unread_terminal_input_stays_for_the_shell(sit: Sit, tools: Tools) -> None:
    (tools.place / "file").write_text("content")
    seat = sit("rdpipe", "<file", "cat >got; sleep 0.2", below='"$@"; read l; echo "then $l"')
    seat.types(b"for the shell\n")
    assert seat.ended(5) == 0, seat.shown
    assert b"then for the shell" in seat.shown
    assert (tools.place / "got").read_text() == "content"


def test_ctrl_c_is_not_end_of_typed_input(sit: Sit, tools: Tools) -> None:
    seat = sit("rdpipe", "cat && echo through >&2", ">target")
    tools.pid_of("rdsend\0")
    seat.types(b"half\n")
    tools.await_words("cat")
    seat.types(b"\x03")
    assert seat.ended() == 130
    assert b"through" not in seat.shown
    assert not (tools.place / "target").exists()


def test_killed_rdpipe_is_not_end_of_typed_input(sit: Sit, tools: Tools) -> None:
    seat = sit("rdpipe", "cat && touch through", ">target")
    tools.await_words("cat")
    seat.types(b"half\n")
    rows = tools.ours().items()
    slow = [pid for pid, words in rows if words[1:2] == ["--agent"]]
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in slow:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        seat.process.kill()
        time.sleep(0.3)
        assert {"through", "target"}.isdisjoint(os.listdir(tools.place))
    tools.none_left()


@pytest.mark.parametrize("segments", [["cat </dev/tty"], ["cat </dev/tty", "cat"]])
def test_command_that_reads_the_terminal_is_ended(sit: Sit, segments: list[str]) -> None:
    """A command on another host is in the background, where no user can answer it."""
    seat = sit("rdpipe", *segments, reads=False)
    assert seat.ended() not in (0, 130)
    assert b"was stopped: it asks at the terminal" in seat.shown
