"""rdsend at a terminal: stdin is a terminal, and stderr shows the progress."""

import contextlib
import fcntl
import os
import subprocess
import termios
import time

import pytest

from tests.rdma.ends import KEY, Ends

pytestmark = pytest.mark.e2e


class Terminal:
    """rdsend in the foreground of a terminal of its own."""

    def __init__(self, ends: Ends, *words: str) -> None:
        self.master, slave = os.openpty()

        def sit() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [str(ends.folder / "rdsend"), *words[:-1], "127.0.0.1", str(ends.port)]
            + [word for word in words[-1:] if word],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=ends.place,
            env={**os.environ, "RDPIPE_KEY": KEY.decode()},
            preexec_fn=sit,
        )
        os.close(slave)

    def types(self, text: bytes) -> None:
        os.write(self.master, text)

    def ended(self) -> tuple[int, str]:
        """Return the exit status and the terminal's output."""
        shown = b""
        with contextlib.suppress(OSError):  # EIO: the other side is closed
            while some := os.read(self.master, 4096):
                shown += some
        os.close(self.master)
        return self.process.wait(timeout=10), shown.decode()


def test_lines_are_sent_as_they_are_typed_until_ctrl_d(ends: Ends) -> None:
    receiver = ends.receive()
    terminal = Terminal(ends, "")
    assert receiver.process.stdout
    for line in (b"one\n", b"two\n"):
        terminal.types(line)
        assert os.read(receiver.process.stdout.fileno(), 100) == line
    terminal.types(b"\x04")
    assert terminal.ended()[0] == 0
    assert receiver.ended().status == 0


@pytest.mark.parametrize("typed", [b"", b"half a line"])
def test_ctrl_c_ends_both_ends_without_a_file(ends: Ends, typed: bytes) -> None:
    receiver = ends.receive("out")
    terminal = Terminal(ends, "-v", "")
    shown = b""
    while b"sending to" not in shown:
        shown += os.read(terminal.master, 4096)
    terminal.types(typed + b"\x03")
    status, _ = terminal.ended()
    assert status == 130
    ended = receiver.ended(3)
    assert ended.status == 1 and "signal 2" in ended.err
    assert list(ends.place.iterdir()) == []


def test_ctrl_c_while_it_waits_for_the_receiver(ends: Ends) -> None:
    receiver = ends.receive("out")
    receiver.kill(19)  # SIGSTOP: connections are accepted, but no bytes are sent
    terminal = Terminal(ends, "")
    time.sleep(0.5)
    terminal.types(b"\x03")
    assert terminal.ended()[0] in (130, -2)
    receiver.kill()


def test_progress_has_a_rate_and_the_time_left(ends: Ends) -> None:
    (ends.place / "in").write_bytes(bytes(8_000_000))
    receiver = ends.receive("/dev/null")
    terminal = Terminal(ends, "-v", "--rate", "4M", "in")
    status, shown = terminal.ended()
    assert status == 0 and receiver.ended().status == 0
    assert "MB/s, " in shown and " %, " in shown and " s left" in shown
    assert "Bandwidth" in shown


def test_option_no_progress_keeps_verbose_summary(ends: Ends) -> None:
    (ends.place / "in").write_bytes(bytes(4_000_000))
    receiver = ends.receive("/dev/null")
    terminal = Terminal(ends, "-v", "--no-progress", "--rate", "4M", "in")
    status, shown = terminal.ended()
    assert status == 0 and receiver.ended().status == 0
    assert "\x1b" not in shown and "Bandwidth" in shown
