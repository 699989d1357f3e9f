"""Verb `fpvstation raw`: a session's pictures, decoded, on stdout, to pipe to a screen.

    fpvstation raw SESSION | rdpipe host:'ffplay -f rawvideo -video_size 640x480 -'

Planar YUV 4:2:0, frame after frame, each at its time after the first frame.
"""

import argparse
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from fpvcar.recordings.export import pictures
from fpvcar.recordings.export.export import Report, in_order, one_by_one, require
from fpvcar.recordings.export.pictures import Frame
from fpvcar.runtime.clock import ClockNs
from fpvcar.runtime.units import SECOND_NS, counted
from fpvstation.cli.verbs import open_store
from fpvstation.errors import StationError
from fpvstation.replicas.restore import session_of
from fpvstation.store.replica_log import ReplicaLog

FORM = "yuv420p"
LOW_DELAY = 1 << 19
"""AV_CODEC_FLAG_LOW_DELAY: return a picture with its own unit, not with the next one."""
PAUSE_MOST_NS = 5 * SECOND_NS
"""Longest pause shown between two parts of a session."""


class Picture(NamedTuple):
    """A decoded frame. `at_ns` counts from the first one."""

    at_ns: int
    width: int
    height: int
    data: bytes


def run(arguments: argparse.Namespace) -> int:
    """Run the verb; return losses.INCOMPLETE if a file has losses and `--partial` is not given.
    Raises StationError, RecordingError, OSError."""
    if sys.stdout.isatty():
        print(
            "fpvstation: raw video refused on a terminal: pipe it, as in\n"
            "  fpvstation raw SESSION | rdpipe host:'ffplay -f rawvideo ...'",
            file=sys.stderr,
        )
        return 1
    require("av", "sudo apt install python3-av, or pip install av in a virtual environment", "raw")
    store, disk = open_store(arguments.store)
    session = session_of(arguments.session, store, disk, ReplicaLog(disk))
    paths = [arguments.store / segment.path for segment in store.listed(session)]
    if not paths:
        raise StationError(f"{session} is not in the store: fpvstation restore {session}")
    report = Report(_print_error)
    try:
        count = write(sys.stdout.buffer, paths, report, not arguments.fast)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _print_error("the reader closed the pipe")
        return 1
    _print_error(counted(count, "picture"))
    return report.status(arguments.partial) if count else 1


def _print_error(message: str) -> None:
    print(f"fpvstation: {message}", file=sys.stderr)


def write(out: BinaryIO, paths: Sequence[Path], report: Report, true_rate: bool) -> int:
    """Write all pictures of these files and return their number. Raises OSError."""
    frames, count = pictures_of(paths, report), 0
    for picture in paced(frames) if true_rate else frames:
        if not count:
            report.out(
                f"-f rawvideo -pixel_format {FORM} -video_size {picture.width}x{picture.height}"
            )
        out.write(picture.data)
        out.flush()
        count += 1
    return count


def pictures_of(paths: Sequence[Path], report: Report) -> Iterator[Picture]:
    """Yield all pictures of these files; `report` gets their losses."""
    files = one_by_one(in_order(paths, report.say, report.lost), report.say)
    decodable = pictures.DecodableFilter()
    frames = (
        frame
        for recording in report.judged(files)
        for frame in pictures.frames(recording, decodable=decodable)
    )
    return decoded(frames, report.lost)


def decoded(
    frames: Iterable[Frame], lost: Callable[[str], None] = lambda message: None
) -> Iterator[Picture]:
    """Yield each picture in the size of the first, as raw video has no headers. A unit
    that cannot be decoded is left out and reported to `lost`; a pause is shortened."""
    import av  # only this verb needs it: Debian's package only suggests it

    codec: Any = av.CodecContext.create("h264", "r")
    codec.flags |= LOW_DELAY
    clock, width, height, undecoded = _Clock(), 0, 0, 0
    for frame in itertools.chain(frames, [None]):  # None at the end flushes the decoder
        at_ns = clock.at(frame.capture_ns) if frame else clock.now_ns
        try:
            decoded_pictures = codec.decode(av.Packet(frame.unit) if frame else None)
        except av.error.InvalidDataError:
            undecoded += 1
            continue
        for picture in decoded_pictures:
            width, height = width or picture.width, height or picture.height
            resized = picture.reformat(width, height, FORM)
            yield Picture(at_ns, width, height, resized.to_ndarray().tobytes())
    if undecoded:
        lost(f"{counted(undecoded, 'unit')} could not be decoded")


class _Clock:
    """Time since the first picture, without the long pauses."""

    def __init__(self) -> None:
        self._last_ns: int | None = None
        self.now_ns = 0

    def at(self, capture_ns: int) -> int:
        last_ns = capture_ns if self._last_ns is None else self._last_ns
        self.now_ns += min(max(capture_ns - last_ns, 0), PAUSE_MOST_NS)
        self._last_ns = max(capture_ns, last_ns)
        return self.now_ns


def paced(
    frames: Iterable[Picture],
    clock_ns: ClockNs = time.monotonic_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Picture]:
    """Yield each picture at its time; late pictures are yielded at once."""
    began_ns = clock_ns()
    for picture in frames:
        ahead_ns = picture.at_ns - (clock_ns() - began_ns)
        if ahead_ns > 0:
            sleep(ahead_ns / SECOND_NS)
        yield picture
