"""Runs rdpipe and rdcp, and finds every process that they started anywhere.

A mark in the environment does not pass through SSH, so each test's commands carry a
word of its own: the path of its folder.
"""

import itertools
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

Ended = subprocess.CompletedProcess[bytes]

TOOL_NAMES = {"rdpipe", "rdcp"}
OWN_KEYS = {("--key-fd", "10"), ("--key-fd", "12")}  # as leashwork.h numbers them


def processes() -> Iterator[tuple[int, int, list[str]]]:
    """Pid, parent's pid and words of every process that is no zombie."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_text()
            words = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        state, parent = stat.rpartition(")")[2].split()[:2]
        if state != "Z":
            yield int(folder.name), int(parent), words.split("\0")[:-1]


class Tools:
    """`folder` has the binaries, `place` is the test's own."""

    def __init__(self, folder: Path, ssh: str, place: Path) -> None:
        self.folder = folder
        self.ssh = ssh
        self.place = place
        self._before = {pid for pid, _, _ in processes()}
        self._started: list[subprocess.Popen[bytes]] = []

    def words(self, tool: str, arguments: Sequence[str | Path]) -> list[str]:
        far = ["--ssh", self.ssh, "--remote-path", str(self.folder)]
        return [str(self.folder / tool), *far, *map(str, arguments)]

    def start(
        self, tool: str, *arguments: str | Path, stdin: int = subprocess.PIPE
    ) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            self.words(tool, arguments),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.place,
        )
        self._started.append(process)
        return process

    def run(
        self,
        tool: str,
        *arguments: str | Path,
        stdin: bytes = b"",
        within_s: float = 30,
    ) -> Ended:
        return subprocess.run(
            self.words(tool, arguments),
            input=stdin,
            capture_output=True,
            timeout=within_s,
            cwd=self.place,
        )

    def ours(self) -> dict[int, list[str]]:
        """What was started since this test began: tools, and anything named after it."""
        mark = str(self.place)
        return {
            pid: words
            for pid, _, words in processes()
            if pid not in self._before
            and words
            and (
                os.path.basename(words[0]) in TOOL_NAMES
                or mark in " ".join(words)
                or words[-1].endswith("--leash")  # ssh, and the leash itself
                or "--leash" in words
                or any(pair in OWN_KEYS for pair in itertools.pairwise(words))
            )
        }

    def none_left(self, within_s: float = 12) -> None:
        until = time.monotonic() + within_s
        while left := self.ours():
            assert time.monotonic() < until, f"still there: {left}"
            time.sleep(0.02)

    def pid_of(self, *needles: str, within_s: float = 10) -> int:
        """The one process whose words hold each of `needles`; waits for it."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            for pid, words in self.ours().items():
                if all(needle in "\0".join(words) for needle in needles):
                    return pid
            time.sleep(0.02)
        raise AssertionError(f"no process {needles}: {self.ours()}")

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.none_left()
