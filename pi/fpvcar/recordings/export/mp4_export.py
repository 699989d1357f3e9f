"""Export of recordings as one mp4: pictures unchanged, each at its capture time.

    plan()     read every file: count the pictures and compute the size of the film
    pieces()   read every file again: yield the mp4 header, then picture by picture

No picture is re-encoded, no temporary file is written, and only a few pictures are in memory. Both
methods are generators with small steps, so a server may stop between two steps. Pictures that
cannot be decoded are left out; `left_out` counts them before the first byte is sent.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import NamedTuple

from fpvcar.recordings.export import pictures
from fpvcar.recordings.export.mp4 import ParameterSets, SampleIndex, check, sample_of, sets_of
from fpvcar.recordings.export.pictures import LEAD_NS, DecodableFilter, Frame, LeftOut
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.reader import EVER_NS, Recording
from fpvcar.runtime.texts import Phrase, Text
from fpvcar.runtime.units import SECOND_NS
from fpvcar.runtime.workers import Rest, no_rest
from fpvcar.video import h264

EXPORT_NO_KEY = Phrase(
    "export_no_key", "{count} pictures are left out: no key frame leads up to them"
)
EXPORT_DOUBLED = Phrase(
    "export_doubled", "{count} pictures are left out: their time is in it already"
)
EXPORT_PAUSE = Phrase(
    "export_pause", "between two pictures is a pause of {hours} h: export them to two films"
)

PAUSE_MOST_NS = 1800 * SECOND_NS
USUAL_NS = SECOND_NS // 30
PIECE_BYTES = 64 * 1024
PICTURES_MOST = 2_000_000
"""Limit of some 18 hours; a plan of this size takes 24 MB."""


class TimeRange(NamedTuple):
    """Time range, UTC."""

    start_ns: int = 0
    end_ns: int = EVER_NS


WHOLE = TimeRange()


class FilmPicture(NamedTuple):
    """Picture of the film; `sets` is set for key frames only."""

    frame: Frame
    nals: list[bytes]
    sets: ParameterSets | None


class Timeline:
    """Filter for decodable pictures: a film needs ascending times and sizes that mp4 can hold.
    `left_out` counts the others."""

    def __init__(self, left_out: LeftOut | None = None) -> None:
        self._left_out = left_out or LeftOut()
        self._last_us, self._waiting = -1, False

    def picture(self, frame: Frame) -> FilmPicture | None:
        """Return the next picture for the film; None if it is left out."""
        if frame.capture_ns // 1000 <= self._last_us:
            self._left_out.doubled += 1  # from a file given twice, or a different clock
            self._waiting = True  # the following pictures refer to this one
            return None
        nals = h264.nal_units(frame.unit)
        sets = sets_of(nals) if frame.key else None
        if sets:
            self._waiting = not _possible(sets)
        if self._waiting:
            self._left_out.add(frame.capture_ns)
            return None
        self._last_us = frame.capture_ns // 1000
        return FilmPicture(frame, nals, sets)


class Mp4Export:
    """Film of several recordings. `opened()` reopens the recordings, one after the other.

    The film begins with the last key frame before the time range, if there is one.
    """

    def __init__(
        self,
        opened: Callable[[], Iterable[Recording]],
        time_range: TimeRange = WHOLE,
        rest: Rest = no_rest,
    ) -> None:
        """Call `rest` repeatedly while the film's index is written."""
        self._opened, self._time_range, self._rest = opened, time_range, rest
        self._index, self._head = SampleIndex(), b""
        self.left_out = LeftOut()

    @property
    def pictures(self) -> int:
        """Return the number of pictures in the film."""
        return len(self._index.sizes)

    @property
    def seconds(self) -> float:
        """Return the duration of the film in seconds."""
        return self._index.length_us / 1e6

    @property
    def missing(self) -> list[Text]:
        """Return messages about recorded pictures that the film lacks."""
        lines = list[Text]()
        if self.left_out.count:
            lines.append(EXPORT_NO_KEY(count=self.left_out.count))
        if self.left_out.doubled:
            lines.append(EXPORT_DOUBLED(count=self.left_out.doubled))
        return lines

    @property
    def size(self) -> int:
        """Return the size of the film in bytes; 0 before `plan` has run."""
        return len(self._head) + self._index.media_bytes if self._head else 0

    def plan(self) -> Generator[int, None, None]:
        """Read all recordings; yield the bytes of pictures read so far.

        If there are no pictures, `size` stays 0. Raises RecordingError, OSError.
        """
        index, before, done = self._index, Frame(0, False, b""), 0
        length_ns = USUAL_NS
        self.left_out = LeftOut(self._time_range.start_ns)
        for frame, nals, sets in self._shown(self.left_out):
            if before.unit:
                length_ns = frame.capture_ns - before.capture_ns
                if length_ns > PAUSE_MOST_NS:
                    hours = f"{length_ns / 3.6e12:.1f}"
                    raise RecordingError(EXPORT_PAUSE(hours=hours))
                at_us = frame.capture_ns // 1000
                index.lengths_us.append(at_us - before.capture_ns // 1000)
            else:
                index.began_s = frame.capture_ns // SECOND_NS
            index.add(_size(nals), sets)
            if self.pictures > PICTURES_MOST:
                raise RecordingError(
                    f"more than {PICTURES_MOST:,} pictures: export them to two films"
                )
            before = frame
            done += len(frame.unit)
            yield done
        if before.unit:
            index.lengths_us.append(min(length_ns, SECOND_NS) // 1000)
            self._head = index.head(self._rest)

    def pieces(self) -> Iterator[bytes]:
        """Yield the film in pieces. Raises RecordingError if a file has changed,
        OSError."""
        pending, size = [self._head], len(self._head)
        sizes = iter(self._index.sizes)
        for expected, picture in zip(sizes, self._shown(LeftOut()), strict=False):
            sample = sample_of(picture.nals)
            if len(sample) != expected:
                raise RecordingError("a recording has changed meanwhile: export it again")
            pending.append(sample)
            size += len(sample)
            if size >= PIECE_BYTES:
                yield b"".join(pending)
                pending, size = [], 0
        if next(sizes, None) is not None:
            raise RecordingError("a recording was deleted meanwhile: export the rest again")
        yield b"".join(pending)

    def _shown(self, left_out: LeftOut) -> Iterator[FilmPicture]:
        """Yield the pictures of the film; every call yields the same pictures."""
        timeline = Timeline(left_out)
        for frame in self._leading(left_out):
            picture = timeline.picture(frame)
            if picture is not None:
                yield picture

    def _leading(self, left_out: LeftOut) -> Iterator[Frame]:
        """Yield decodable pictures, beginning with the last key frame before the time range."""
        start_ns, end_ns = self._time_range
        lead, decodable = list[Frame](), DecodableFilter()
        for recording in self._opened():
            from_ns = max(0, start_ns - LEAD_NS)
            for frame in pictures.frames(recording, from_ns, end_ns, left_out, decodable):
                lead = [frame] if frame.key else [*lead, frame]
                if frame.capture_ns >= start_ns:
                    yield from lead
                    lead = []


def _size(nals: list[bytes]) -> int:
    return sum(4 + len(nal) for nal in nals if nal[0] & 31 != h264.AUD)


def _possible(sets: ParameterSets) -> bool:
    try:
        check(sets)
    except ValueError:
        return False
    return True
