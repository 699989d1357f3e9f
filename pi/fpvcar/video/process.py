"""What every `fpvcar camera ...` process has: its pipes, its requests, its end.

    stdout: pack_record, one access unit each, written whole
    stdin:  "key" -> the next frame is an IDR; "bitrate N" -> bits per second
            "look EXPOSURE BRIGHTNESS NIGHT" -> from the next frame on

Nothing queues: a reader that falls behind misses pictures, then gets a key frame. It
ends when stdin ends or nobody reads; where it cannot work the last line on stderr says
why and what to do, and the exit status which kind of trouble it is.
"""

import array
import fcntl
import math
import os
import select
import stat
import sys
import termios
import time
from collections.abc import Iterable
from typing import Protocol

from fpvcar.devices.capture import Missing, NoCamera
from fpvcar.video.image_settings import Look, parse_look
from fpvcar.wire.camera import Record, pack_record

FAILED, BAD_OPTIONS, MISSING, NO_CAMERA = 1, 2, 3, 4
"""Exit statuses: the camera failed; options that it cannot read; a part of the system
that is to be installed; no camera, or one that was unplugged."""
BITRATES = (50_000, 25_000_000)
BEHIND_S = 0.15
"""An encoder's units wait so long for a reader until some are left out."""
ASK_AGAIN_S = 0.5


def report(text: str) -> None:
    """One line on stderr."""
    print(f"camera: {text}", file=sys.stderr, flush=True)


class Control:
    """What stdin has asked for. Bytes in, wishes out."""

    def __init__(self) -> None:
        self.key = False
        self.bitrate: int | None = None
        self.look: Look | None = None
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """Takes bytes; returns the lines that it does not understand."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-200:]
        return [
            f"ignored: {line[:80]!r}"
            for line in lines
            if line.strip() and not self._line(line.split())
        ]

    def _line(self, words: list[bytes]) -> bool:
        if words == [b"key"]:
            self.key = True
            return True
        if len(words) == 2 and words[0] == b"bitrate" and words[1].isdigit():
            wanted = int(words[1][:12])
            if BITRATES[0] <= wanted <= BITRATES[1]:
                self.bitrate = wanted
                return True
        look = parse_look(words)
        self.look = look or self.look
        return look is not None


class Pipes:
    """stdin and stdout. `ended` once stdin is at its end or stdout has no reader."""

    def __init__(self, stdin: int, stdout: int, control: Control) -> None:
        self._in, self._out, self._control = stdin, stdout, control
        self.ended = False
        self._read_s = time.monotonic()
        mode = os.fstat(stdout).st_mode
        self._count = 0
        if stat.S_ISFIFO(mode):
            self._count = termios.FIONREAD
        elif stat.S_ISSOCK(mode):
            self._count = termios.TIOCOUTQ
        if self._count:
            os.set_blocking(stdout, False)

    def listen(self, seconds: float, until_room: bool = False, until: int = -1) -> bool:
        """Takes what stdin says, for so long or until there is room on stdout.

        True: the descriptor `until` has become readable.
        """
        due = time.monotonic() + seconds
        outs = [self._out] if until_room else []
        ins = [self._in, until] if until >= 0 else [self._in]
        while not self.ended:
            left_s = max(due - time.monotonic(), 0.0)
            ready, room, _ = select.select(ins, outs, [], left_s)
            if self._in in ready:
                data = os.read(self._in, 4096)
                self.ended = not data
                for line in self._control.feed(data):
                    report(line)
            if until in ready:
                return True
            if room or not ready:
                return False
        return False

    def taken(self) -> bool:
        """Whether the reader has taken all that was written."""
        if not self._count:
            return True
        waiting = array.array("i", [0])
        fcntl.ioctl(self._out, self._count, waiting)
        return waiting[0] == 0

    def behind(self) -> bool:
        """Whether the reader has not taken all that was written for BEHIND_S."""
        now_s = time.monotonic()
        if self.taken():
            self._read_s = now_s
        return now_s - self._read_s > BEHIND_S

    def write(self, record: bytes) -> None:
        """Writes all of it, however slowly it is read, or until `ended`."""
        left = memoryview(record)
        while left and not self.ended:
            try:
                left = left[os.write(self._out, left) :]
            except BlockingIOError:
                self.listen(1.0, until_room=True)
            except (BrokenPipeError, ConnectionResetError):
                self.ended = True


class Camera(Protocol):
    """What the process asks of a camera. Each may raise CaptureError."""

    fd: int
    """Readable when there is something to take."""

    def take(self) -> Iterable[Record]:
        """The access units that are there, the oldest first; never waits long."""

    def skip(self) -> bool:
        """Throws away what is there; True if the next unit is whole all the same."""

    def request_key(self) -> None:
        """The next frame is to be a key frame, if that can be asked for."""

    def set_bitrate(self, bitrate: int) -> None:
        """Bits per second from now on, if that can be asked for."""

    def set_look(self, look: Look) -> None:
        """Exposure, brightness and night from now on, as far as it has them."""


def serve(camera: Camera, pipes: Pipes, control: Control) -> None:
    """Passes units on until a pipe ends. Raises CaptureError.

    After units that the reader missed comes a key frame, which is asked for when it
    reads again: a key frame that waited would be a stale one.
    """
    whole, asked_s = False, -math.inf
    while not pipes.ended:
        ready = pipes.listen(1.0, until=camera.fd)
        _obey(camera, control)
        if not ready:
            continue
        if pipes.behind():
            whole = camera.skip() and whole
            continue
        for record in camera.take():
            whole = whole or record.key
            if whole:
                pipes.write(pack_record(*record))
        if not whole and time.monotonic() - asked_s > ASK_AGAIN_S:
            asked_s = time.monotonic()
            camera.request_key()


def _obey(camera: Camera, control: Control) -> None:
    if control.look is not None:
        camera.set_look(control.look)
    if control.bitrate is not None:
        camera.set_bitrate(control.bitrate)
    if control.key:
        camera.request_key()
    control.key, control.bitrate, control.look = False, None, None


def status_of(fault: Exception) -> int:
    """Says a fault as the last line on stderr; the exit status for it."""
    report(" ".join(str(fault).split()))
    if isinstance(fault, Missing):
        return MISSING
    return NO_CAMERA if isinstance(fault, NoCamera) else FAILED
