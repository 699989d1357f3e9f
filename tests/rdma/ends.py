"""An rdsend and an rdrecv on this machine, over TCP unless told otherwise."""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from testkit.pipes import SLOWNESS

KEY = b"sixteen bytes and more"
Source = int | IO[bytes] | None
# Factor by which a sanitizer, or valgrind, extends every time limit of a test.


@dataclass
class Ended:
    status: int
    out: bytes
    err: str


class End:
    """An rdsend or rdrecv that runs on this machine."""

    def __init__(
        self,
        words: Sequence[str],
        place: Path,
        *,
        key: bytes = KEY,
        stdin: Source = subprocess.DEVNULL,
        stdout: Source = subprocess.PIPE,
        pass_fds: Sequence[int] = (),
        before: Callable[[], None] | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            words,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=place,
            env={**os.environ, "RDPIPE_KEY": key.decode()},
            pass_fds=pass_fds,
            preexec_fn=before,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def ended(self, within_s: float = 20) -> Ended:
        out, err = self.process.communicate(timeout=within_s * SLOWNESS)
        return Ended(self.process.returncode, out or b"", err.decode(errors="replace"))

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.process.pid, number)

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        with contextlib.suppress(ValueError):  # its pipes were closed before
            self.process.communicate(timeout=10)


class Ends:
    """Start both ends. On closing, none of their processes may be left."""

    def __init__(self, folder: Path, place: Path) -> None:
        self.folder = folder
        self.place = place
        self.port = 0
        self._started: list[End] = []

    def receive(
        self,
        *rest: str | Path,
        options: Sequence[str] = (),
        key: bytes = KEY,
        stdout: Source = subprocess.PIPE,
        before: Callable[[], None] | None = None,
    ) -> End:
        """Start an rdrecv and wait until it listens, on self.port."""
        shown, told = os.pipe()
        words = ["--announce-fd", str(told), *options, "0", *map(str, rest)]
        end = End(
            [str(self.folder / "rdrecv"), *words],
            self.place,
            key=key,
            stdout=stdout,
            pass_fds=[told],
            before=before,
        )
        os.close(told)
        self._started.append(end)
        ready, _, _ = select.select([shown], [], [], 10)
        line = os.read(shown, 4096).decode() if ready else ""
        os.close(shown)
        assert line.startswith("port="), end.ended().err
        self.port = int(line.split()[0].removeprefix("port="))
        return end

    def send(
        self,
        *rest: str | Path,
        options: Sequence[str] = (),
        key: bytes = KEY,
        stdin: Source = subprocess.DEVNULL,
        host: str = "127.0.0.1",
        port: int | None = None,
        before: Callable[[], None] | None = None,
    ) -> End:
        where = [host, str(port or self.port)]
        words = [str(self.folder / "rdsend"), *options, *where, *map(str, rest)]
        end = End(words, self.place, key=key, stdin=stdin, before=before)
        self._started.append(end)
        return end

    def send_bytes(self, data: bytes, options: Sequence[str] = ()) -> Ended:
        end = self.send(options=options, stdin=subprocess.PIPE)
        out, err = end.process.communicate(data, timeout=30 * SLOWNESS)
        return Ended(end.process.returncode, out or b"", err.decode(errors="replace"))

    def left(self) -> dict[int, list[str]]:
        """Return every process with this test's folder as its working directory."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended, or is a zombie
                if os.readlink(folder / "cwd") == str(self.place):
                    found[int(folder.name)] = (folder / "cmdline").read_text().split("\0")
        found.pop(os.getpid(), None)
        return found

    def close(self) -> None:
        for end in self._started:
            end.close()
        until = time.monotonic() + 20
        while left := self.left():
            assert time.monotonic() < until, f"left behind: {left}"
            time.sleep(0.02)
