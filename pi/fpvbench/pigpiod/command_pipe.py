"""The command pipe takes lines of text from `pigpio` and answers in `pigout`; both are
in the directory that stands for /dev."""

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from fpvbench.pigpiod import command_text
from fpvbench.pigpiod.protocol import Outcome, Request, Wait

IN_NAME, OUT_NAME = "pigpio", "pigout"
LINE_MAX = 65_535
"""A longer one is cut, as fgets does."""
LINES_MAX = 100
"""The pipe is not read while so many lines wait."""
TURN = 50
"""Commands in a row, as a client of the socket has."""


class CommandPipe:
    """Executes lines in their order; a command that waits holds up the next."""

    def __init__(
        self, directory: Path, execute: Callable[[Request], Outcome], clock_us: Callable[[], int]
    ) -> None:
        self._directory = directory
        self._execute, self._clock_us = execute, clock_us
        self._in = self._out = -1
        self._rest = b""
        self._lines: deque[bytes] = deque()
        self._commands: Iterator[Request] | None = None
        self._said = ""
        self._reading = self._busy = False

    def open(self) -> None:
        """Makes the pipes anew. Raises OSError."""
        self._in = _fifo(self._directory / IN_NAME, 0o662)
        self._out = _fifo(self._directory / OUT_NAME, 0o664)
        self._read_on()

    def close(self) -> None:
        """Removes the pipes."""
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
        """Works until all is done, a command waits, or its turn is over."""
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
        """Executes one command or takes the next line; returns whether to go on."""
        if self._commands is None:
            if not self._lines:
                return False
            line = self._lines.popleft().decode("latin-1")
            self._commands = command_text.commands(line)
        try:
            request = next(self._commands, None)
        except command_text.BadCommand:
            self._said += command_text.refusal()
            request = None
        if request is None:
            self._flush()
            return True
        return self._take(request, self._execute(request))

    def _take(self, request: Request, outcome: Outcome) -> bool:
        """Takes a command's outcome; returns whether the command has ended."""
        if isinstance(outcome, Wait):
            self._busy = True
            delay_s = max(0, outcome.until_us - self._clock_us()) / 1e6
            loop = asyncio.get_running_loop()
            loop.call_later(delay_s, self._go_on, request, outcome)
            return False
        self._said += command_text.answer(request, outcome)
        return True

    def _go_on(self, request: Request, wait: Wait) -> None:
        # Also after the end of the pipe: PROCD must free its slot.
        outcome = wait.finish(max(self._clock_us(), wait.until_us))
        if self._take(request, outcome) and self._in >= 0:
            self._work()

    def _flush(self) -> None:
        """Writes a line's answers at once; a full pipe loses them."""
        said, self._said, self._commands = self._said.encode(), "", None
        with contextlib.suppress(BlockingIOError):
            os.write(self._out, said)


def _fifo(path: Path, mode: int) -> int:
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    path.chmod(mode)
    # Opened for both, so that neither a reader nor a writer is needed.
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)
