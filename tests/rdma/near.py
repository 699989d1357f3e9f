"""Other hosts without an sshd: a fake ssh that runs the remote command on this machine."""

import contextlib
import fcntl
import os
import select
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testkit.network.pipes import SLOWNESS, Tools

RUNS_IT = 'exec sh -c "$2"\n'
ASKS = """\
[ "$1" = host1 ] && sleep 0.3  # so that another would ask first
printf 'password of %s: ' "$1" >/dev/tty
read answer </dev/tty
echo "$1 $answer" >>asked
"""


@dataclass(frozen=True)
class NearSsh:
    """Fake ssh that gets HOST and a command, as ssh does; it runs `first` before the command."""

    folder: Path
    first: str = ""

    @property
    def command(self) -> str:
        path = self.folder / "ssh"
        path.write_text(f"#!/bin/sh\n{self.first}{RUNS_IT}")
        path.chmod(0o755)
        return f"'{path}'"


Near = Callable[..., Tools]
"""Return a runner of rdpipe and rdcp in an empty folder; the argument is `first` of its NearSsh."""


class Seat:
    """A program in the foreground of a terminal of its own."""

    def __init__(
        self,
        words: Sequence[str],
        place: Path,
        environment: Mapping[str, str],
        *,
        reads: bool = True,
    ) -> None:
        """Start the program; with `reads`, its stdin is the terminal, too."""
        self.shown = b""
        self.master, slave = os.openpty()

        def sit() -> None:
            os.setsid()
            fcntl.ioctl(2, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            words,
            stdin=slave if reads else subprocess.DEVNULL,
            stdout=slave,
            stderr=slave,
            cwd=place,
            env=environment,
            preexec_fn=sit,
        )
        os.close(slave)

    def types(self, text: bytes) -> None:
        os.write(self.master, text)

    def awaits(self, text: bytes, within_s: float = 30) -> None:
        """Wait until the terminal has shown the text."""
        until = time.monotonic() + within_s * SLOWNESS
        while text not in self.shown:
            left_s = until - time.monotonic()
            ready, _, _ = select.select([self.master], [], [], max(left_s, 0))
            assert ready, f"no {text!r} in {self.shown!r}"
            self.shown += os.read(self.master, 4096)

    def ended(self, within_s: float = 30) -> int:
        """Return the exit status; `shown` then has all output."""
        until = time.monotonic() + within_s * SLOWNESS
        with contextlib.suppress(OSError):  # EIO: the other side is closed
            while (left_s := until - time.monotonic()) > 0:
                if select.select([self.master], [], [], left_s)[0]:
                    self.shown += os.read(self.master, 4096)
        return self.process.wait(timeout=max(until - time.monotonic(), 0.1))

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=60)
        os.close(self.master)


Sit = Callable[..., Seat]
"""Start a tool at a terminal; see the fixture `sit`."""
