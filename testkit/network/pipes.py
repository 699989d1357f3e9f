"""Run rdpipe and rdcp, and find all their processes on any host.

The processes are identified by a mark in their environment, on both sides of SSH.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from testkit.harness import wait_for

SLOWNESS = {"build-address": 2, "build-thread": 4, "build-valgrind": 8}.get(
    Path(os.environ.get("RDMA_TOOLS", "")).name, 1
)

Ended = subprocess.CompletedProcess[bytes]

MARK = "RDPIPE_TEST"  # the sshd of the tests sets it for its sessions too


def processes() -> Iterator[tuple[int, list[str]]]:
    """Yield pid and words of every process that has words: no zombie, no kernel thread."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if words:
            yield int(folder.name), words.split("\0")[:-1]


def environment(pid: int) -> list[str]:
    """Return the process's own environment, without variables that are equal in ours."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return []
    ours = {f"{name}={value}" for name, value in os.environ.items()}
    return [row for row in text.split("\0") if row not in ours]


def marked(pid: int, mark: str) -> bool:
    return f"{MARK}={mark}" in environment(pid)


class Far(Protocol):
    """Access to another host, by SSH or without it."""

    @property
    def folder(self) -> Path:
        """Return the host's own folder, whose path marks its processes."""

    @property
    def command(self) -> str:
        """Return the argument of `--ssh`."""


class Tools:
    """Runner of the tools. `folder` has the binaries, `place` is the test's own."""

    def __init__(self, folder: Path, far: Far, place: Path) -> None:
        self.folder = folder
        self.ssh = far.command
        self.environment = {**os.environ, MARK: str(far.folder)}
        self.place = place
        self._before = {pid for pid, _ in processes()}
        self._started: list[subprocess.Popen[bytes]] = []

    def words(self, tool: str, arguments: Sequence[str | Path]) -> list[str]:
        far = ["--ssh", self.ssh, "--remote-path", str(self.folder)]
        return [str(self.folder / tool), *far, *map(str, arguments)]

    def start(
        self,
        tool: str,
        *arguments: str | Path,
        stdin: int = subprocess.PIPE,
        before: Callable[[], None] | None = None,
    ) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            self.words(tool, arguments),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.place,
            env=self.environment,
            preexec_fn=before,
        )
        self._started.append(process)
        return process

    def run(
        self,
        tool: str,
        *arguments: str | Path,
        stdin: bytes = b"",
        within_s: float = 30,
        before: Callable[[], None] | None = None,
    ) -> Ended:
        return subprocess.run(
            self.words(tool, arguments),
            input=stdin,
            capture_output=True,
            timeout=within_s * SLOWNESS,
            cwd=self.place,
            env=self.environment,
            preexec_fn=before,
        )

    def ours(self) -> dict[int, list[str]]:
        """Return the processes that this test started: tools, and programs named after it."""
        return {
            pid: words
            for pid, words in processes()
            if pid not in self._before and marked(pid, self.environment[MARK])
        }

    def await_part(self, part: Path, most: int = 0) -> None:
        """Wait until a file has more than `most` bytes."""
        wait_for(lambda: part.exists() and part.stat().st_size > most, f"no {part.name}")

    def kill_source(self) -> None:
        """Kill the source of a copy under way."""
        rows = self.ours().items()
        os.kill(next(pid for pid, row in rows if row[1:2] == ["--serve-source"]), signal.SIGKILL)

    def cut(self, part: Path, *arguments: str) -> None:
        """Kill an rdcp under way, after a megabyte of the file has arrived in its part."""
        process = self.start("rdcp", "--rate", "4M", *arguments)
        self.await_part(part, 1_000_000)
        process.kill()
        process.communicate()
        self.none_left()

    def none_left(self, within_s: float = 30) -> None:
        wait_for(lambda: not self.ours(), "processes are still there", within_s)

    def pid_of(self, *needles: str, within_s: float = 30) -> int:
        """Return the one process whose words have each of `needles`; wait for it."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            for pid, words in self.ours().items():
                ours = words[1:2] == ["--ssh"]  # this one names all hosts
                if not ours and all(one in "\0".join([*words, ""]) for one in needles):
                    return pid
            time.sleep(0.02)
        raise AssertionError(f"no process {needles}: {self.ours()}")

    def await_words(self, *last: str, within_s: float = 30) -> None:
        """Wait for a process whose words end with `last`."""
        rows = self.ours
        wait_for(
            lambda: any(row[-len(last) :] == [*last] for row in rows().values()),
            f"no process {last}",
            within_s,
        )

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.none_left()
