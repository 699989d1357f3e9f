"""Remuxes recorded pictures into an mp4, not encoded again, each at its time. PyAV.

Only exports import this: PyAV costs 60 MB, and a car has it only if somebody put it
there.
"""

import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from fpvcar.recordings import messages, pictures
from fpvcar.recordings.pictures import Frame
from fpvcar.recordings.reader import Recording
from fpvcar.units import SECOND_NS

MICROSECOND = Fraction(1, 1_000_000)
"""The time base of the track: an mp4 can hold a pause of at most 2^31 of them."""
PAUSE_MOST_NS = 1800 * SECOND_NS
USUAL_NS = SECOND_NS // 30


class ExportError(Exception):
    """Says what cannot be exported, and what to do about it."""


class Film(NamedTuple):
    """A film that was written; `left_out` says in words what could not be decoded."""

    pictures: int
    seconds: float
    left_out: str


def write_mp4(
    recordings: Iterable[Recording], path: Path, tell: Callable[[int], None]
) -> Film | None:
    """Writes a film; None if there is no picture. Raises ExportError, OSError."""
    import av

    recorded = 0

    def each() -> Iterator[Recording]:
        nonlocal recorded
        for one in recordings:
            recorded += one.counts[messages.CAMERA]
            yield one

    frames = _timed(each(), tell)
    first = next(frames, None)
    if first is None:
        return None
    try:
        count, end_us = _mux(av, path, first[0], itertools.chain([first], frames))
    except av.FFmpegError as fault:
        raise ExportError(f"the film cannot be written: {fault}") from None
    left = recorded - count
    words = f"; {left} are left out: no key frame leads up to them" if left else ""
    return Film(count, end_us / 1e6, words)


def _mux(
    av: Any, path: Path, first: Frame, frames: Iterable[tuple[Frame, int]]
) -> tuple[int, int]:
    """Writes them; returns how many there are, and where the last one ends, us."""
    options = {"movflags": "+faststart", "video_track_timescale": "1000000"}
    count = end_us = 0
    with (
        av.open(io.BytesIO(first.unit), format="h264") as shape,
        av.open(str(path), "w", format="mp4", options=options) as out,
    ):
        track = out.add_stream_from_template(shape.streams.video[0])
        track.time_base = MICROSECOND
        for frame, length_ns in frames:
            at_us = (frame.capture_ns - first.capture_ns) // 1000
            out.mux(_packet(av, track, frame, at_us, length_ns // 1000))
            count, end_us = count + 1, at_us + length_ns // 1000
    return count, end_us


def _packet(av: Any, track: Any, frame: Frame, at_us: int, length_us: int) -> Any:
    packet = av.Packet(frame.unit)
    packet.stream, packet.time_base = track, MICROSECOND
    packet.pts = packet.dts = at_us
    packet.duration = length_us
    packet.is_keyframe = frame.key
    return packet


def _timed(
    recordings: Iterable[Recording], tell: Callable[[int], None]
) -> Iterator[tuple[Frame, int]]:
    """Yields each picture, and how long it is to be seen, ns: until the next one."""
    before: Frame | None = None
    done, length_ns = 0, USUAL_NS
    for recording in recordings:
        for frame in pictures.frames(recording):
            done += len(frame.unit)
            tell(done)
            if before is not None:
                if frame.capture_ns // 1000 <= before.capture_ns // 1000:
                    continue  # the same once more, from a file given twice
                length_ns = frame.capture_ns - before.capture_ns
                if length_ns > PAUSE_MOST_NS:
                    hours = length_ns / SECOND_NS / 3600
                    raise ExportError(
                        f"between two of these files is a pause of {hours:.1f} h: "
                        "export them to two films"
                    )
                yield before, length_ns
            before = frame
    if before is not None:
        yield before, min(length_ns, SECOND_NS)
