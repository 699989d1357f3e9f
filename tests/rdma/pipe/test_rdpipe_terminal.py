"""rdpipe at a terminal: typed input goes to the program that asked for it."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testkit.pipes import Tools

from tests.rdma.near import ASKS, NearSsh, Seat

pytestmark = pytest.mark.e2e
Sit = Callable[..., Seat]


@pytest.fixture
def tools(rdma_tools: Path, tmp_path: Path) -> Iterator[Tools]:
    running = Tools(rdma_tools, NearSsh(tmp_path, ASKS), tmp_path)
    yield running
    running.close()


@pytest.fixture
def sit(tools: Tools) -> Iterator[Sit]:
    """Start rdpipes in the foreground of a terminal; `below` is a shell line that gets one as
    "$@"."""
    with contextlib.ExitStack() as seats:

        def sit_down(*segments: str, reads: bool = True, below: str = "") -> Seat:
            words = tools.words("rdpipe", segments)
            words = ["sh", "-c", below, "sh", *words] if below else words
            seat = Seat(words, tools.place, tools.environment, reads=reads)
            seats.callback(seat.close)
            return seat

        yield sit_down


def test_password_goes_to_ssh_alone(sit: Sit, tools: Tools) -> None:
    seat = sit("host1:cat >got")
    seat.awaits(b"password of host1: ")
    seat.types(b"secret\n")
    tools.pid_of("rdrecv\0")  # it stands
    seat.types(b"data\n\x04")
    assert seat.ended() == 0, seat.shown
    assert (tools.place / "asked").read_text() == "host1 secret\n"
    assert (tools.place / "got").read_bytes() == b"data\n"


def test_passwords_are_asked_for_in_turn(sit: Sit, tools: Tools) -> None:
    seat = sit("host1:cat", "host2:cat >got")
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
    seat = sit("<file", "cat >got; sleep 0.2", below='"$@"; read l; echo "then $l"')
    seat.types(b"for the shell\n")
    assert seat.ended(5) == 0, seat.shown
    assert b"then for the shell" in seat.shown
    assert (tools.place / "got").read_text() == "content"


def test_ctrl_c_is_not_end_of_typed_input(sit: Sit, tools: Tools) -> None:
    seat = sit("cat && echo through >&2", ">target")
    tools.pid_of("rdsend\0")
    seat.types(b"half\n")
    tools.await_words("cat")
    seat.types(b"\x03")
    assert seat.ended() == 130
    assert b"through" not in seat.shown
    assert not (tools.place / "target").exists()


def test_killed_rdpipe_is_not_end_of_typed_input(sit: Sit, tools: Tools) -> None:
    seat = sit("cat && touch through", ">target")
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
    seat = sit(*segments, reads=False)
    assert seat.ended() not in (0, 130)
    assert b"was stopped: it asks at the terminal" in seat.shown
