"""Last words of a child process, in any number of pieces."""

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from fpvcar.runtime import child_process, pdeathsig
from fpvcar.runtime.texts import VERBATIM, Text, stderr_line

PIECE_BYTES = 64


async def said(words: str) -> Text | None:
    """Return the last line of a program that writes these words to stderr."""
    argv = ["sh", "-c", 'printf "%s" "$1" >&2; read end', "sh", words]
    process = child_process.ChildProcess(argv, True, lambda data: None)
    try:
        process.write(b"end\n")
        await process.exited
        return process.last_line
    finally:
        await process.end()


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("begin", ["no EGL; apt install libegl1 ", "{"])
def test_long_line_in_pieces_keeps_its_beginning(
    begin: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault comes first in the line, then the next step."""
    monkeypatch.setattr(child_process, "READ_BYTES", PIECE_BYTES)
    line = begin + "why " * 100
    assert asyncio.run(said(line + end)) == VERBATIM(text=line[: child_process.LINE_MAX])


def test_long_line_that_is_a_text_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "READ_BYTES", PIECE_BYTES)
    text = Text("camera_path", "{why}", why="why " * 100)
    assert asyncio.run(said(f"{stderr_line(text)}\n")) == text


def _descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


def _started(talks: bool) -> None:
    async def start() -> None:
        child_process.ChildProcess(["sleep", "60"], talks, lambda data: None)

    asyncio.run(start())


def _no_descriptor(*_: Any) -> int:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_child_process_without_pidfd_leaves_no_program_and_no_descriptor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    born: list[subprocess.Popen[bytes]] = []
    real: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen

    def noted(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        born.append(real(*args, **options))
        return born[-1]

    monkeypatch.setattr("fpvcar.runtime.child_process.subprocess.Popen", noted)
    monkeypatch.setattr("fpvcar.runtime.child_process.os.pidfd_open", _no_descriptor)
    before = _descriptors()
    with pytest.raises(OSError, match="Too many open files"):
        _started(talks=True)
    assert [one.returncode for one in born] == [-signal.SIGKILL]
    assert _descriptors() == before


@pytest.mark.parametrize("allowed", [0, 1, 2])
async def test_child_process_without_a_pipe_leaves_no_descriptor(
    allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[int, int]] = []
    real = os.pipe

    def pipe() -> tuple[int, int]:
        if len(made) == allowed:
            _no_descriptor()
        made.append(real())
        return made[-1]

    before = _descriptors()
    monkeypatch.setattr("fpvcar.runtime.child_process.os.pipe", pipe)
    with pytest.raises(OSError, match="Too many open files"):
        child_process.ChildProcess(["sleep", "60"], True, lambda data: None)
    assert len(made) == allowed and _descriptors() == before


@pytest.mark.parametrize(
    ("trap", "status"), [("", -signal.SIGTERM), ("trap '' TERM; ", -signal.SIGKILL)]
)
def test_ended_process_is_reaped_even_if_it_ignores_sigterm(trap: str, status: int) -> None:
    words = ["sh", "-c", f"{trap}echo ready; exec sleep 100"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        pdeathsig.end(process, 0.2 if trap else 20.0)
        assert process.returncode == status
