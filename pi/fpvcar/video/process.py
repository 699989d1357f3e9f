"""Common part of every `fpvcar camera ...` process: its pipes, its requests, its end.

    stdout: pack_record, one access unit each, written whole
    stdin:  "key" -> the next frame is an IDR; "bitrate N" -> bits per second
            "fps N" -> at most so many frames a second
            "look EXPOSURE BRIGHTNESS NIGHT" -> from the next frame on

There is no queue: a reader that falls behind misses pictures, then gets a key frame. The process
ends when stdin ends or stdout has no reader. On a failure the last line on stderr gives the reason
and the next step, and the exit status the kind of failure.
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

from fpvcar.devices.capture import EncoderHangs, NoCamera, PackageMissing
from fpvcar.runtime.texts import VERBATIM, fault_text, stderr_line
from fpvcar.video.image_settings import ImageSettings, parse_image_settings
from fpvcar.wire.camera import Record, pack_record
from fpvcar.wire.video import FPS_MOST

FAILED, BAD_OPTIONS, MISSING, NO_CAMERA, ENCODER = 1, 2, 3, 4, 5
"""Exit statuses: the camera failed; invalid options; a missing part of the system to be
installed; no camera, or an unplugged one; the board's encoder hangs."""
STATUSES: dict[type[Exception], int] = {
    PackageMissing: MISSING,
    NoCamera: NO_CAMERA,
    EncoderHangs: ENCODER,
}
PREFIX, SENSOR_WORD = "camera: ", "sensor "
"""Beginnings of each line on stderr, and of the report of a Pi's sensor."""
FIXED_RATE, ANY_RATE = "fixed rate", "any rate"
"""Reports of a camera that ignores "fps N", and of one that no longer does."""
BITRATES = (50_000, 25_000_000)
BEHIND_S = 0.15
"""Time for which an encoder's units wait for a reader before some are skipped."""
ASK_AGAIN_S = 0.5


def report(text: str) -> None:
    """Print one line on stderr."""
    print(f"{PREFIX}{text}", file=sys.stderr, flush=True)


class Control:
    """Parser of the requests on stdin."""

    def __init__(self) -> None:
        self.key = False
        self.bitrate: int | None = None
        self.fps: int | None = None
        self.image: ImageSettings | None = None
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """Process bytes; return a message for each invalid line."""
        *lines, tail = (self._rest + data).split(b"\n")
        self._rest = tail[-200:]
        return [
            f"ignored: {line[:80]!r}"
            for line in lines
            if line.strip() and not self._line(line.split())
        ]

    def _line(self, words: list[bytes]) -> bool:
        if words == [b"key"]:
            self.key = True
            return True
        if len(words) == 2 and words[1].isdigit():
            number = int(words[1][:12])
            if words[0] == b"bitrate" and BITRATES[0] <= number <= BITRATES[1]:
                self.bitrate = number
                return True
            if words[0] == b"fps" and 1 <= number <= FPS_MOST:
                self.fps = number
                return True
        settings = parse_image_settings(words)
        self.image = settings or self.image
        return settings is not None


class Pipes:
    """stdin and stdout of the process. `ended` once stdin is at its end or stdout has no reader."""

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

    def listen(self, seconds: float, until_room: bool = False, fd: int = -1) -> bool:
        """Read stdin, for so long or until there is room on stdout.

        Returns True if the descriptor `fd` has become readable.
        """
        due_s = time.monotonic() + seconds
        outs = [self._out] if until_room else []
        ins = [self._in, fd] if fd >= 0 else [self._in]
        while not self.ended:
            left_s = max(due_s - time.monotonic(), 0.0)
            ready, room, _ = select.select(ins, outs, [], left_s)
            if self._in in ready:
                data = os.read(self._in, 4096)
                self.ended = not data
                for line in self._control.feed(data):
                    report(line)
            if fd in ready:
                return True
            if room or not ready:
                return False
        return False

    def is_drained(self) -> bool:
        """Return whether the reader has read everything written."""
        if not self._count:
            return True
        waiting = array.array("i", [0])
        fcntl.ioctl(self._out, self._count, waiting)
        return waiting[0] == 0

    def behind(self) -> bool:
        """Return whether data have waited for the reader for BEHIND_S."""
        now_s = time.monotonic()
        if self.is_drained():
            self._read_s = now_s
        return now_s - self._read_s > BEHIND_S

    def write(self, record: bytes) -> None:
        """Write all of it, even to a slow reader, or until `ended`."""
        unsent = memoryview(record)
        while unsent and not self.ended:
            try:
                unsent = unsent[os.write(self._out, unsent) :]
            except BlockingIOError:
                self.listen(1.0, until_room=True)
            except (BrokenPipeError, ConnectionResetError):
                self.ended = True


class Camera(Protocol):
    """Interface of a camera for the process. Each call may raise CaptureError."""

    fd: int
    """Descriptor that is readable when a unit can be taken."""

    def take(self) -> Iterable[Record]:
        """Return the available access units, the oldest first; never waits long."""

    def skip(self) -> bool:
        """Discard the available units; return True if the next unit is whole all the same."""

    def request_key(self) -> None:
        """Make the next frame a key frame, if the camera can."""

    def set_bitrate(self, bitrate: int) -> None:
        """Set the bits per second from now on, if the camera can."""

    def set_fps(self, most: int) -> None:
        """Take at most so many frames a second from now on, if the camera can."""

    def set_image(self, settings: ImageSettings) -> None:
        """Set exposure, brightness and night from now on, as far as the camera has them."""


def serve(camera: Camera, pipes: Pipes, control: Control) -> None:
    """Pass units on until a pipe ends. Raises CaptureError.

    After units missed by the reader a key frame follows. It is requested when the reader reads
    again: a queued key frame would be stale.
    """
    synced, asked_s = False, -math.inf
    while not pipes.ended:
        ready = pipes.listen(1.0, fd=camera.fd)
        _obey(camera, control)
        if not ready:
            continue
        if pipes.behind():
            synced = camera.skip() and synced
            continue
        for record in camera.take():
            synced = synced or record.key
            if synced:
                pipes.write(pack_record(*record))
        if not synced and time.monotonic() - asked_s > ASK_AGAIN_S:
            asked_s = time.monotonic()
            camera.request_key()


def _obey(camera: Camera, control: Control) -> None:
    if control.image is not None:
        camera.set_image(control.image)
    if control.bitrate is not None:
        camera.set_bitrate(control.bitrate)
    if control.fps is not None:
        camera.set_fps(control.fps)
    if control.key:
        camera.request_key()
    control.key, control.bitrate, control.fps, control.image = False, None, None, None


def status_of(fault: Exception) -> int:
    """Print a fault as the last line on stderr; return its exit status."""
    text = fault_text(fault)
    if text.key == VERBATIM.key:  # one line on a page and in a log
        text = VERBATIM(text=str(text).replace("\n", " "))
    print(stderr_line(text), file=sys.stderr, flush=True)
    return STATUSES.get(type(fault), FAILED)
