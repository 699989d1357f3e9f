"""Camera process and decoder for tests."""

import os
import select
import subprocess
import sys
from collections.abc import Callable

import av
import numpy as np
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame

from fpvcar.wire.camera import Record, parse_record_header

Picture = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
BENCH = "fpvbench.camera.process"


class Camera:
    """Camera process with a reader of its records."""

    def __init__(self, *options: str, program: str = BENCH, **env: str) -> None:
        """Run the module `program` with these options."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", program, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **env},
            bufsize=0,
            start_new_session=True,
        )

    def ask(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line.encode() + b"\n")

    def _read(self, count: int) -> bytes:
        assert self.process.stdout
        data = b""
        while len(data) < count:
            ready, _, _ = select.select([self.process.stdout], [], [], 20.0)
            assert ready, "no record for 20 s"
            piece = self.process.stdout.read(count - len(data))
            assert piece, "camera ended"
            data += piece
        return data

    def record(self) -> Record:
        length, key, captured = parse_record_header(self._read(16))
        return Record(key, captured, self._read(length))

    def wait_gaps(self, holds: Callable[[int], bool], count: int = 4) -> None:
        """Read until `holds` is true of `count` intervals of capture (µs) in a row, for 100 records
        at most: after a stall of the test many old ones wait in the pipe."""
        times = [self.record().capture_us]
        gaps: list[int] = []
        while len(gaps) < count or not all(map(holds, gaps[-count:])):
            assert len(gaps) < 100, f"no {count} such intervals in a row: {gaps}"
            times.append(self.record().capture_us)
            gaps.append(times[-1] - times[-2])

    def said(self) -> str:
        assert self.process.stderr
        return self.process.stderr.read().decode()

    def close(self) -> None:
        """Kill the process, if it has not ended."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe
            pipe.close()

    def end_and_said(self) -> str:
        """End the process with status 0; return its output."""
        assert self.end() == 0
        return self.said()

    def end(self) -> int:
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(60.0)


def decoder() -> VideoCodecContext:
    made = VideoCodecContext.create("h264", "r")
    assert isinstance(made, VideoCodecContext)
    return made


def decode(codec: VideoCodecContext, unit: bytes) -> VideoFrame:
    """Return the one picture of an access unit; fail if the decoder holds it back."""
    codec.flags |= 1 << 19  # AV_CODEC_FLAG_LOW_DELAY
    (picture,) = codec.decode(av.Packet(unit))
    return picture


def luma(picture: VideoFrame) -> Picture:
    planes = picture.to_ndarray(format="yuv420p").astype(np.uint8)
    return planes[: picture.height]


def nal_types(unit: bytes) -> list[int]:
    return [piece[0] & 31 for piece in unit.split(b"\0\0\1")[1:]]


def seen(camera: Camera, count: int = 4) -> Picture:
    """Return the last of `count` pictures, from a stream of its own."""
    codec = decoder()
    return [luma(decode(codec, camera.record().unit)) for _ in range(count)][-1]


def middle(picture: Picture) -> float:
    """Return the level of the picture's middle."""
    rows, columns = picture.shape[0] // 8, picture.shape[1] // 8
    return float(np.median(picture[3 * rows : 5 * rows, 3 * columns : 5 * columns]))


def corner(picture: Picture) -> tuple[str, str]:
    """Return the place of the bright corner."""
    down, across = divmod(max(range(4), key=lambda at: _quarter(picture, at).mean()), 2)
    return ("top", "bottom")[down], ("left", "right")[across]


def _quarter(picture: Picture, at: int) -> Picture:
    rows, columns = picture.shape[0] // 4, picture.shape[1] // 4
    down, across = divmod(at, 2)
    top, left = 3 * rows * down, 3 * columns * across
    return picture[top : top + rows, left : left + columns]
