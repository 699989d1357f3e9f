"""Supervision of a child program of `run`: pipes on the event loop, guaranteed termination.

    Supervisor (back-off, silence, restarts) -> ChildProcess (one life, its pipes)

The child has its own process group. It ends with `run` in every case: `end` kills the group; if
`run` is killed, the kernel kills the child (setpriv of util-linux sets PR_SET_PDEATHSIG, so Python
needs no fork hook), a child that reads stdin reads its end, and a child that writes gets SIGPIPE.
"""

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from io import FileIO
from typing import IO, Any

from fpvcar.runtime.pdeathsig import with_pdeathsig
from fpvcar.runtime.texts import SAYS, VERBATIM, Phrase, Text, fault_text, os_reason, text_of_line
from fpvcar.runtime.units import MIB

SILENT = Phrase("camera_silent", "it has sent nothing for {seconds} s")
KILLED = Phrase("camera_killed", "its program was killed ({signal})")
EXITED = Phrase("camera_exited", "its program ended with status {status}")

READ_BYTES = 1 << 18
PIPE_BYTES = MIB
"""Size of a pipe: whole key frames fit, so one write is one read."""
LINE_MAX, ERRORS_MAX = 200, 2000
"""Characters of a line that are kept, and bytes of an unfinished one, with key and values."""
TERM_S, KILL_S = 0.5, 0.4
"""Time given to SIGTERM, and then to SIGKILL, before `end` returns."""
THAW_S = 0.05


def signal_name(number: int) -> str:
    """Return a name such as SIGKILL."""
    return next((one.name for one in signal.Signals if one == number), f"signal {number}")


class ChildProcess:
    """Process of a program, from start to end. Create it on the event loop; always call `end`.

    `on_bytes` gets the child's output on stdout, in the callback that read it; b"" is the end.
    Raises OSError if the program cannot be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        talks: bool,
        on_bytes: Callable[[bytes], None],
        rest_s: Callable[[], float] = lambda: 0.0,
        stdin_bytes: int = 0,
        on_line: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Start the program. After each read, output stays in the pipe for `rest_s()`.

        `on_line` gets each line on its stderr.
        `stdin_bytes`: size of the pipe to its stdin, 0 for the kernel's default.
        """
        self.last_line: Text | None = None
        """Last line that the child wrote to stderr; usually the reason for its end."""
        self.last_line_s = 0.0
        """CLOCK_MONOTONIC at the reading of that line."""
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._on_bytes, self._rest_s, self._on_line = on_bytes, rest_s, on_line
        self._resting: asyncio.TimerHandle | None = None
        self._errors = b""
        self._files: dict[int, IO[bytes]] = {}
        self._popen = subprocess.Popen(
            with_pdeathsig(argv),
            bufsize=0,
            stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._in, self._out, self._err = map(
            self._own, (self._popen.stdin, self._popen.stdout, self._popen.stderr)
        )
        with contextlib.suppress(OSError):  # the user's quota of pipe memory is used up
            fcntl.fcntl(self._out, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        if talks and stdin_bytes:
            fcntl.fcntl(self._in, fcntl.F_SETPIPE_SZ, stdin_bytes)
        try:
            self._pidfd = self._own(FileIO(os.pidfd_open(self._popen.pid)))
        except OSError:  # an end could not be detected without it
            self._kill(signal.SIGKILL)
            self._popen.wait()
            self._close()
            raise
        self._loop.add_reader(self._out, self._read_out)
        self._loop.add_reader(self._err, self._read_err)
        self._loop.add_reader(self._pidfd, self._on_exit)

    @property
    def pid(self) -> int:
        """Process id of the child, and id of its group."""
        return self._popen.pid

    def write(self, data: bytes) -> bool:
        """Write to the child's stdin, at most PIPE_BUF bytes; return False if it is closed or
        full."""
        if self._in not in self._files:
            return False
        try:
            return os.write(self._in, data) > 0
        except (BlockingIOError, BrokenPipeError):
            return False

    def close_stdin(self) -> None:
        """Close the child's stdin, so that it reads the end."""
        self._close(self._in)

    async def end(self) -> None:
        """End the child and its group within a second: SIGTERM, then SIGKILL."""
        try:
            if not self.exited.done():
                self._kill(signal.SIGTERM)
                await asyncio.wait([self.exited], timeout=TERM_S)
        finally:
            if not self.exited.done():
                self._kill(signal.SIGKILL)
                await asyncio.wait([self.exited], timeout=KILL_S)
            self._close()

    def _own(self, file: IO[bytes] | None) -> int:
        """Return the descriptor of a file that `end` closes; -1 if there is none."""
        if file is None:
            return -1
        os.set_blocking(file.fileno(), False)
        self._files[file.fileno()] = file
        return file.fileno()

    def _close(self, *fds: int) -> None:
        """Close the given descriptors of ours, or all."""
        if self._resting is not None and self._out in (fds or self._files):
            self._resting.cancel()
        for fd in fds or tuple(self._files):
            if fd in self._files:
                self._loop.remove_reader(fd)
                self._files.pop(fd).close()

    def _kill(self, number: int) -> None:
        """Send a signal to the group. Valid only until its leader is reaped: the id may then be
        reused."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, number)

    def _read(self, fd: int) -> bytes | None:
        """Return available data, b"" at the end, or None if no data is available."""
        try:
            return os.read(fd, READ_BYTES)
        except BlockingIOError:
            return None

    def hurry(self) -> None:
        """Read the data in the pipe at once."""
        if self._resting is not None:
            self._loop.call_soon(self._read_out)

    def _read_out(self) -> None:
        if self._out not in self._files:
            return
        if self._resting is not None:
            self._resting.cancel()
        data = self._read(self._out)
        if data == b"":
            self._close(self._out)
        elif rest_s := self._rest_s():
            if self._resting is None:
                self._loop.remove_reader(self._out)
            self._resting = self._loop.call_later(rest_s, self._read_out)
        elif self._resting is not None:
            self._resting = None
            self._loop.add_reader(self._out, self._read_out)
        if data is not None:
            self._on_bytes(data)

    def _read_err(self) -> None:
        data = self._read(self._err)
        if data == b"":
            self._close(self._err)
        *lines, self._errors = (self._errors + (data or b"")).split(b"\n")
        self._errors = self._errors[:ERRORS_MAX]
        for line in lines:
            self._keep_line(line)

    def _keep_line(self, line: bytes) -> None:
        words = line.decode("utf-8", "replace").strip()
        if words:
            text = text_of_line(words)
            if text.key == VERBATIM.key:
                text = VERBATIM(text=str(text)[:LINE_MAX])
            self.last_line, self.last_line_s = text, time.monotonic()
            self._on_line(words[:LINE_MAX])

    def _on_exit(self) -> None:
        """Handle the death of the leader before it is reaped: kill the rest of its group."""
        self._loop.remove_reader(self._pidfd)
        self._kill(signal.SIGKILL)
        while self._err in self._files and (data := self._read(self._err)):
            self._errors += data[-READ_BYTES:]
        *lines, last = self._errors.split(b"\n")
        for line in (*lines, last):
            self._keep_line(line)
        self._read_out()
        status = self._popen.wait()
        if not self.exited.done():
            self.exited.set_result(status)


class BackOff:
    """Exponential back-off between starts: from `first_s`, doubled each time, up to `most_s`."""

    def __init__(self, first_s: float, most_s: float) -> None:
        self._first_s, self._most_s = first_s, most_s
        self._next_s = first_s

    def pause_s(self, succeeded: bool) -> float:
        """Return the pause before the next start; `succeeded`: the last life was successful."""
        pause_s = self._first_s if succeeded else self._next_s
        self._next_s = min(2.0 * pause_s, self._most_s)
        return pause_s

    def lengthen(self, pause_s: float) -> None:
        """Make the next pause at least so long, unless the life before it is successful."""
        self._next_s = max(self._next_s, pause_s)


class Supervisor(ABC):
    """Supervisor of one program: starts, watches, ends and restarts it.

    A subclass interprets the program's output (`receive`), defines when silence is a fault
    (`late`), and handles the end of a life (`ended`). An empty argv means no program.
    """

    def __init__(
        self, argv: Sequence[str], talks: bool, back_off: BackOff, silence_s: float
    ) -> None:
        """Set the program. `silence_s`: longest interval between two calls of `late`."""
        self.argv = list(argv)
        self.process: ChildProcess | None = None
        self.restarts = 0
        self.back_off = back_off
        self._talks, self._silence_s = talks, silence_s
        self._fault: asyncio.Future[Text] | None = None
        self._quiet: asyncio.TimerHandle | None = None
        self._stopping = asyncio.Event()

    # Hooks for subclasses

    @abstractmethod
    def begin(self, now_s: float) -> None:
        """Prepare for a new life: reset the state of the last one."""

    def command(self) -> Sequence[str]:
        """Return the command line of the life that begins."""
        return self.argv

    def started(self) -> None:  # noqa: B027 # optional hook
        """Handle the start of the program; from now on it can be written to."""

    @abstractmethod
    def receive(self, data: bytes) -> None:
        """Handle the child's output; b"": it closed its stdout."""

    def reported(self, line: str) -> None:  # noqa: B027 # optional hook
        """Process a line of the program's stderr."""

    @abstractmethod
    def late(self, now_s: float) -> float | Text:
        """Return the time to wait for the next sign of life, or the reason of a time-out."""

    @abstractmethod
    def ended(self, reason: Text) -> bool:
        """Handle the end of a life; return True if it was successful until then."""

    def not_started(self, program: str, fault: OSError | None) -> Text | None:
        """Return the reason why the program was not started, or cannot be; None if it can."""
        if fault is not None:
            return SAYS(place=program, reason=os_reason(fault))
        return (
            None
            if shutil.which(program)
            else Text("program_missing", "no program {program}", program=program)
        )

    def rest_s(self) -> float:
        """Return how long to leave the program's output unread from now on."""
        return 0.0

    def exited(self, status: int) -> Text:
        """Return the reason of an exit by itself; a signal's number is negative."""
        if status < 0:
            return KILLED(signal=signal_name(-status))
        cause, line = EXITED(status=status), self.line_since(0.0)
        return SAYS(place=cause, reason=line) if line else cause

    # Interface for subclasses and owners

    async def run(self) -> None:
        """Keep the program running until `stop` or cancellation."""
        while self.argv and not self._stopping.is_set():
            reason = await self._live()
            if self._stopping.is_set():
                break
            self.restarts += 1
            pause_s = self.back_off.pause_s(self.ended(reason))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)
        await self._stopping.wait()

    async def stop(self) -> None:
        """End the program within 1 s, and `run`."""
        self._stopping.set()
        if self.process is not None:
            await self.process.end()

    def write_line(self, line: str) -> bool:
        """Write a line to the program; return False if it is not running or cannot read."""
        return self.process is not None and self.process.write(f"{line}\n".encode())

    def line_since(self, since_s: float) -> Text | None:
        """Return the program's last line on stderr, if it is at least that new."""
        process = self.process
        if process is None or process.last_line_s < since_s:
            return None
        return process.last_line

    def fail(self, reason: Text) -> None:
        """End this life of the program."""
        if self._fault is not None and not self._fault.done():
            self._fault.set_result(reason)

    def if_quiet(self, delay_s: float, act: Callable[..., None], *args: object) -> None:
        """Call `act` after `delay_s`, unless the program writes before or this life ends."""
        loop = asyncio.get_running_loop()
        self._quiet = loop.call_later(delay_s, act, *args)

    # Life cycle

    async def _live(self) -> Text:
        """Run the program from start to end; return the reason of its end."""
        self._fault = asyncio.get_running_loop().create_future()
        self.begin(time.monotonic())
        program = self.argv[0]
        if (reason := self.not_started(program, None)) is not None:
            return reason
        try:
            self.process = ChildProcess(
                self.command(), self._talks, self._receive, self.rest_s, on_line=self.reported
            )
        except OSError as fault:
            return self.not_started(program, fault) or fault_text(fault)
        self.started()
        try:
            return await self._watch(self.process, self._fault)
        finally:
            self._fault.cancel()
            self._stop_timer()
            process, self.process = self.process, None
            await process.end()

    async def _watch(self, process: ChildProcess, fault: "asyncio.Future[Text]") -> Text:
        signs: list[asyncio.Future[Any]] = [process.exited, fault]
        while True:
            late = self.late(time.monotonic())
            if isinstance(late, Text):
                # This process may have been suspended: data in the pipe counts first.
                await asyncio.sleep(THAW_S)
                late = self.late(time.monotonic())
            if isinstance(late, Text):
                return late
            # The first bytes shorten the deadlines: compute them again.
            pause_s = min(late, self._silence_s)
            await asyncio.wait(signs, timeout=pause_s, return_when="FIRST_COMPLETED")
            if process.exited.done():
                return self.exited(process.exited.result())
            if fault.done():
                return fault.result()

    def _receive(self, data: bytes) -> None:
        if self._quiet is not None:
            self._stop_timer()
        if self._fault is not None and not self._fault.done():
            self.receive(data)

    def _stop_timer(self) -> None:
        if self._quiet is not None:
            self._quiet.cancel()
