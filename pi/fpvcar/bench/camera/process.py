"""The bench camera's process: pictures of the emulated world, encoded, on stdout.

    stdout: pack_record, one access unit each, written whole
    stdin:  "key" -> the next frame is an IDR; "bitrate N" -> bits per second

Nothing queues: a frame is taken only when the reader has emptied the pipe. It ends
when stdin ends or nobody reads. One thread does all: what arrives on stdin while a
frame is rendered counts for that frame.
"""

import argparse
import array
import fcntl
import math
import os
import select
import signal
import stat
import sys
import termios
import time
from pathlib import Path

from fpvcar.bench.camera import strip
from fpvcar.bench.camera.encoder import Encoder
from fpvcar.bench.camera.picture import NoPicture, Room, Source, Strip
from fpvcar.bench.soc import attach
from fpvcar.wire.camera import pack_record

BITRATES = (50_000, 25_000_000)
NO_EGL = 3
"""Exit code when there is no EGL."""


def report(text: str) -> None:
    """One line on stderr."""
    print(f"camera: {text}", file=sys.stderr, flush=True)


class Control:
    """What stdin has asked for. Bytes in, wishes out."""

    def __init__(self) -> None:
        self.key = False
        self.bitrate: int | None = None
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
        return False


class Pipes:
    """stdin and stdout. `ended` once stdin is at its end or stdout has no reader."""

    def __init__(self, stdin: int, stdout: int, control: Control) -> None:
        self._in, self._out, self._control = stdin, stdout, control
        self.ended = False
        mode = os.fstat(stdout).st_mode
        self._count = 0
        if stat.S_ISFIFO(mode):
            self._count = termios.FIONREAD
        elif stat.S_ISSOCK(mode):
            self._count = termios.TIOCOUTQ
        if self._count:
            os.set_blocking(stdout, False)

    def listen(self, seconds: float, until_room: bool = False) -> None:
        """Takes what stdin says, for so long or until there is room on stdout."""
        due = time.monotonic() + seconds
        outs = [self._out] if until_room else []
        while not self.ended:
            left_s = max(due - time.monotonic(), 0.0)
            ready, room, _ = select.select([self._in], outs, [], left_s)
            if ready:
                data = os.read(self._in, 4096)
                self.ended = not data
                for line in self._control.feed(data):
                    report(line)
            if room or not ready:
                return

    def taken(self) -> bool:
        """Whether the reader has taken all that was written."""
        if not self._count:
            return True
        waiting = array.array("i", [0])
        fcntl.ioctl(self._out, self._count, waiting)
        return waiting[0] == 0

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


def run(
    source: Source, encoder: Encoder, pipes: Pipes, control: Control, fps: float,
    gop_s: float,
) -> None:  # fmt: skip
    """Frames by the clock until a pipe ends.

    A frame time at which the pipe is not empty, or that has passed, is left out. The
    GOP is counted in seconds: frames left out must not make it longer.
    """
    period_s, due_s, key_s = 1.0 / fps, time.monotonic(), -math.inf
    while not pipes.ended:
        pipes.listen(due_s - time.monotonic())
        late = max(math.floor((time.monotonic() - due_s) / period_s), 0)
        due_s += (late + 1) * period_s
        if pipes.ended or not pipes.taken():
            continue
        captured_us, picture = source.take()
        pipes.listen(0.0)
        if control.bitrate is not None:
            encoder.reopen(control.bitrate)
            control.bitrate = None
        now_s = time.monotonic()
        unit, key = encoder.encode(picture, control.key or now_s >= key_s + gop_s)
        if key:
            control.key, key_s = False, now_s - period_s / 2
        pipes.write(pack_record(key, captured_us, unit))


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fpvcar camera bench")
    parser.add_argument("--soc", type=Path, help="the bench's shared file")
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--fps", type=float, default=30.0)
    parser.add_argument("--bitrate", type=int, default=2_000_000)
    parser.add_argument("--gop-s", type=float, default=1.0)
    parser.add_argument(
        "--source", choices=("world", "strip", "stamped"), default="world",
        help="the room, a strip with the clock, or the room with the strip above it",
    )  # fmt: skip
    options = parser.parse_args(argv)
    least = 64 if options.source == "world" else strip.WIDTH_MIN
    for name, low, high in (
        ("width", least, 1920), ("height", 64, 1080), ("fps", 1, 120),
        ("bitrate", *BITRATES), ("gop_s", 0.0, 1),
    ):  # fmt: skip
        value = getattr(options, name)
        if not low <= value <= high:
            parser.error(
                f"--{name.replace('_', '-')} {value}: expected {low} to {high}"
            )
    if options.width % 2 or options.height % 2:
        parser.error(f"{options.width}x{options.height}: expected even numbers")
    if options.source != "strip" and options.soc is None:
        parser.error("--soc is needed to see the world")
    return options


def _source(options: argparse.Namespace) -> Source:
    if options.source == "strip":
        return Strip(options.width, options.height)
    soc = attach(options.soc)
    return Room(soc, options.width, options.height, options.source == "stamped")


def main(argv: list[str] | None = None) -> int:
    """The process. 0 when a pipe ended, 2 for what it cannot read, 3 without EGL."""
    options = _options(argv)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        source = _source(options)
    except NoPicture as fault:
        report(str(fault))
        return NO_EGL
    except (OSError, ValueError) as fault:
        report(str(fault))
        return 2
    size, control = (options.width, options.height), Control()
    encoder = Encoder(*size, options.fps, options.bitrate)
    pipes = Pipes(sys.stdin.fileno(), sys.stdout.fileno(), control)
    report(f"{options.source} {size[0]}x{size[1]} at {options.fps:g} fps")
    run(source, encoder, pipes, control, options.fps, options.gop_s)
    return 0


if __name__ == "__main__":
    sys.exit(main())
