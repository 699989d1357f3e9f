"""Command pipe: reads lines of text from `pigpio` and writes answers to `pigout`. Both are in
the directory that stands for /dev."""

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from fpvbench.pigpiod.protocol import CommandError, Outcome, Request, Wait
from fpvbench.pigpiod.text import command_text

IN_NAME, OUT_NAME = "pigpio", "pigout"
LINE_MAX = 65_535
"""Longest line in bytes; a longer one is cut, as by fgets."""
LINES_MAX = 100
"""Queued lines at which reading from the pipe pauses."""
TURN = 50
"""Commands executed in a row, as for a client of the socket."""


class CommandPipe:
    """Pipe whose lines are executed in order; a command that waits delays the next."""

    def __init__(
        self, directory: Path, execute: Callable[[Request], Outcome], clock_us: Callable[[], int]
    ) -> None:
        self._directory = directory
        self._execute, self._clock_us = execute, clock_us
        self._in = self._out = -1
        self._rest = b""
        self._lines: deque[bytes] = deque()
        self._commands: Iterator[Request] | None = None
        self._output = ""
        self._reading = self._busy = False

    def open(self) -> None:
        """Create the pipes, replacing old ones. Raises OSError."""
        self._in = _fifo(self._directory / IN_NAME, 0o662)
        self._out = _fifo(self._directory / OUT_NAME, 0o664)
        self._read_on()

    def close(self) -> None:
        loop = asyncio.get_running_loop()
        for file, name in ((self._in, IN_NAME), (self._out, OUT_NAME)):
            if file >= 0:
                loop.remove_reader(file)
                os.close(file)
                with contextlib.suppress(OSError):
                    (self._directory / name).unlink()
        self._in = self._out = -1

    def _read_on(self) -> None:
        if self._in >= 0 and not self._reading:
            self._reading = True
            asyncio.get_running_loop().add_reader(self._in, self._readable)

    def _readable(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._rest += os.read(self._in, LINE_MAX)
        while len(parts := self._rest.split(b"\n", 1)) == 2:
            self._lines.append(parts[0][:LINE_MAX])
            self._rest = parts[1]
        if len(self._rest) >= LINE_MAX:
            self._lines.append(self._rest[:LINE_MAX])
            self._rest = self._rest[LINE_MAX:]
        if not self._busy:
            self._work()

    def _work(self) -> None:
        """Execute commands until the queue is empty, a command waits, or TURN commands are done."""
        self._busy = False
        for _ in range(TURN):
            if self._in < 0 or not self._step():
                break
        else:
            self._busy = True
            asyncio.get_running_loop().call_soon(self._work)
        if len(self._lines) < LINES_MAX:
            self._read_on()
        elif self._reading:
            self._reading = False
            asyncio.get_running_loop().remove_reader(self._in)

    def _step(self) -> bool:
        """Execute one command or fetch the next line; return whether to continue."""
        if self._commands is None:
            if not self._lines:
                return False
            line = self._lines.popleft().decode("latin-1")
            self._commands = command_text.commands(line)
        try:
            request = next(self._commands, None)
        except CommandError as fault:
            self._output += f"{fault.error.value}\n"
            request = None
        if request is None:
            self._flush()
            return True
        return self._take(request, self._execute(request))

    def _take(self, request: Request, outcome: Outcome) -> bool:
        """Process a command's outcome; return whether the command has ended."""
        if isinstance(outcome, Wait):
            self._busy = True
            delay_s = max(0, outcome.until_us - self._clock_us()) / 1e6
            loop = asyncio.get_running_loop()
            loop.call_later(delay_s, self._go_on, request, outcome)
            return False
        self._output += command_text.answer(request, outcome)
        return True

    def _go_on(self, request: Request, wait: Wait) -> None:
        # Also after the pipe is closed: PROCD must free its slot.
        outcome = wait.finish(max(self._clock_us(), wait.until_us))
        if self._take(request, outcome) and self._in >= 0:
            self._work()

    def _flush(self) -> None:
        """Write a line's answers at once; they are lost if the pipe is full."""
        output, self._output, self._commands = self._output.encode(), "", None
        with contextlib.suppress(BlockingIOError):
            os.write(self._out, output)


def _fifo(path: Path, mode: int) -> int:
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    path.chmod(mode)
    # Opened for reading and writing, so that neither a reader nor a writer is needed.
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)
