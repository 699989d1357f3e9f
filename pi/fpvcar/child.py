"""A camera program as a child of `run`: its pipes on the event loop, its end certain.

The child is a process group of its own. It ends with us, whatever happens: `end`
kills the group; if `run` is killed, the kernel kills the child (setpriv of util-linux
sets PR_SET_PDEATHSIG without a fork hook in Python), a talking one reads the end of
its stdin, and a writing one gets SIGPIPE.
"""

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence

READ_BYTES = 1 << 18
PIPE_BYTES = 1 << 20
"""Room for whole key frames, so that one write of the child is one read of ours."""
LINE_MAX = 200
TERM_S, KILL_S = 0.5, 0.4
"""How long SIGTERM has, and then SIGKILL, before `end` returns."""


class CameraProcess:
    """One life of a camera program. Make it on the event loop; `end` it always.

    `on_bytes` gets what the child writes to stdout, in the callback that read it;
    b"" is the end. Raises OSError where the program cannot be started.
    """

    def __init__(
        self, argv: Sequence[str], talks: bool, on_bytes: Callable[[bytes], None]
    ) -> None:
        self.last_line = ""
        """The last line that the child wrote to stderr; usually why it died."""
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._on_bytes = on_bytes
        self._errors = b""
        self._fds: set[int] = set()
        out, err = os.pipe(), os.pipe()
        stdin = os.pipe() if talks else None
        theirs = [out[1], err[1], *(stdin[:1] if stdin else ())]
        self._out, self._err = self._own(out[0]), self._own(err[0])
        self._in = self._own(stdin[1]) if stdin else -1
        with contextlib.suppress(OSError):  # the user's share of pipe memory is used up
            fcntl.fcntl(out[1], fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        try:
            self._popen = subprocess.Popen(
                _leashed(argv),
                stdin=stdin[0] if stdin else subprocess.DEVNULL,
                stdout=out[1],
                stderr=err[1],
                start_new_session=True,
            )
        except OSError:
            self._close()
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        self._pidfd = self._own(os.pidfd_open(self._popen.pid))
        self._loop.add_reader(self._out, self._read_out)
        self._loop.add_reader(self._err, self._read_err)
        self._loop.add_reader(self._pidfd, self._on_exit)

    @property
    def pid(self) -> int:
        """The child's process id, and its group's."""
        return self._popen.pid

    def say(self, line: str) -> bool:
        """Writes a line to the child's stdin. False: it has none, or does not read."""
        if self._in not in self._fds:
            return False
        try:
            return os.write(self._in, f"{line}\n".encode()) > 0
        except (BlockingIOError, BrokenPipeError):
            return False

    async def end(self) -> None:
        """Ends the child and its group within a second: SIGTERM, then SIGKILL."""
        try:
            if not self.exited.done():
                self._kill(signal.SIGTERM)
                await asyncio.wait([self.exited], timeout=TERM_S)
        finally:
            if not self.exited.done():
                self._kill(signal.SIGKILL)
                await asyncio.wait([self.exited], timeout=KILL_S)
            self._close()

    def _own(self, fd: int) -> int:
        os.set_blocking(fd, False)
        self._fds.add(fd)
        return fd

    def _close(self, *fds: int) -> None:
        """Closes the given descriptors of ours, or all."""
        for fd in fds or tuple(self._fds):
            if fd in self._fds:
                self._loop.remove_reader(fd)
                self._fds.discard(fd)
                os.close(fd)

    def _kill(self, number: int) -> None:
        """Signals the group. Only while its leader is not reaped: its id is ours."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, number)

    def _read(self, fd: int) -> bytes | None:
        """What there is; b"" at the end; None if nothing is there now."""
        try:
            return os.read(fd, READ_BYTES)
        except BlockingIOError:
            return None

    def _read_out(self) -> None:
        data = self._read(self._out)
        if data == b"":
            self._close(self._out)
        if data is not None:
            self._on_bytes(data)

    def _read_err(self) -> None:
        data = self._read(self._err)
        if data == b"":
            self._close(self._err)
        *lines, self._errors = (self._errors + (data or b"")).split(b"\n")
        self._errors = self._errors[-LINE_MAX:]
        for line in lines:
            self._said(line)

    def _said(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").strip()
        if text:
            self.last_line = text[:LINE_MAX]

    def _on_exit(self) -> None:
        """The leader is dead and not reaped yet: its group goes with it."""
        self._loop.remove_reader(self._pidfd)
        self._kill(signal.SIGKILL)
        while self._err in self._fds and (data := self._read(self._err)):
            self._errors += data[-READ_BYTES:]
        *lines, last = self._errors.split(b"\n")
        for line in (*lines, last):
            self._said(line)
        if self._out in self._fds:
            self._read_out()
        status = self._popen.wait()
        if not self.exited.done():
            self.exited.set_result(status)


def _leashed(argv: Sequence[str]) -> list[str]:
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", *argv] if setpriv else list(argv)
