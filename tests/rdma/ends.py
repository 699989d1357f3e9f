"""An rdsend and an rdrecv on this machine, over TCP unless told otherwise."""

import contextlib
import os
import select
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from testkit.harness import wait_for
from testkit.network.pipes import SLOWNESS

from tests.rdma.near import Seat
from tests.rdma.records import Peer

KEY = b"sixteen bytes and more"
Source = int | IO[bytes] | None


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
        key: bytes | None = KEY,
        stdin: Source = subprocess.DEVNULL,
        stdout: Source = subprocess.PIPE,
        stderr: Source = subprocess.PIPE,
        pass_fds: Sequence[int] = (),
        before: Callable[[], None] | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            words,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=place,
            env={**os.environ, **({"RDPIPE_KEY": key.decode()} if key is not None else {})},
            pass_fds=pass_fds,
            preexec_fn=before,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def ended(self, within_s: float = 20, data: bytes | None = None) -> Ended:
        out, err = self.process.communicate(data, timeout=within_s * SLOWNESS)
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
            self.process.communicate(timeout=60)


class Ends:
    """Start both ends. On closing, none of their processes may be left."""

    def __init__(self, folder: Path, place: Path) -> None:
        self.folder = folder
        self.place = place
        self.port = 0
        self.announced: dict[str, str] = {}
        """Words of the last receiver about itself."""
        self._open: list[End | Peer | Seat] = []

    def start(self, tool: str, *words: str | Path, enter: Sequence[str] = (), **more: Any) -> End:
        """Start a tool, with the prefix `enter` on its host; `more` is for End."""
        end = End([*enter, str(self.folder / tool), *map(str, words)], self.place, **more)
        self._open.append(end)
        return end

    def receive(self, *rest: str | Path, options: Sequence[str] = (), **more: Any) -> End:
        """Start an rdrecv and wait until it listens, on self.port."""
        shown, told = os.pipe()
        words = ["--announce-fd", str(told), *options, "0", *rest]
        end = self.start("rdrecv", *words, pass_fds=[told], **more)
        os.close(told)
        ready, _, _ = select.select([shown], [], [], 10)
        line = os.read(shown, 4096).decode() if ready else ""
        os.close(shown)
        assert line.startswith("port="), end.ended().err
        self.announced = dict(word.split("=") for word in line.split())
        self.port = int(self.announced["port"])
        return end

    def send(
        self,
        *rest: str | Path,
        options: Sequence[str] = (),
        host: str = "127.0.0.1",
        port: int | None = None,
        **more: Any,
    ) -> End:
        return self.start("rdsend", *options, host, str(port or self.port), *rest, **more)

    def send_bytes(self, data: bytes, options: Sequence[str] = ()) -> Ended:
        return self.send(options=options, stdin=subprocess.PIPE).ended(30, data)

    def pass_on(self, data: bytes, *target: str, options: Sequence[str] = (), **more: Any) -> Ended:
        """Send bytes to a new receiver with these options; both ends must succeed."""
        receiver = self.receive(*target, options=options, **more)
        assert self.send_bytes(data).status == 0
        ended = receiver.ended()
        assert ended.status == 0, ended
        return ended

    def sit(self, *rest: str, options: Sequence[str] = ()) -> Seat:
        """Start an rdsend in the foreground of a terminal of its own."""
        words = [str(self.folder / "rdsend"), *options, "127.0.0.1", str(self.port), *rest]
        seat = Seat(words, self.place, {**os.environ, "RDPIPE_KEY": KEY.decode()})
        self._open.append(seat)
        return seat

    def peer(self) -> Peer:
        """Connect to the receiver as a sender that the test operates."""
        peer = Peer(socket.create_connection(("127.0.0.1", self.port)))
        self._open.append(peer)
        return peer

    def send_to_peer(self, *rest: str | Path, **more: Any) -> tuple[End, Peer]:
        """Start an rdsend whose receiver the test operates."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            sender = self.send(*rest, port=server.getsockname()[1], **more)
            peer = Peer(server.accept()[0])
        self._open.append(peer)
        return sender, peer

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
        for end in self._open:
            end.close()
        wait_for(lambda: not self.left(), "processes are left behind")
