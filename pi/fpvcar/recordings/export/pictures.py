"""Decodable pictures of a recording. See messages.CAMERA.

The pictures begin with a key frame. After a gap (a damaged chunk, or units dropped by the recorder)
they resume at the next key frame. A file that goes on where the last one ended needs none: cameras
with rare key frames make such files.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fpvcar.recordings import codec, messages
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.reader import EVER_NS, Message, Recording
from fpvcar.runtime.units import MIB, SECOND_NS
from fpvcar.video import h264

LEAD_NS = 2 * SECOND_NS
"""Approximate maximum distance to the previous key frame: a camera sends one a second."""
LATE_NS = SECOND_NS // 2
"""Maximum delay between capture and recording of a unit."""
APART_NS = 1000
"""Distance of pictures that were recorded with the same time."""
STRETCH_MOST = 32 * MIB
"""Limit of picture bytes in memory: four times 30 s at 2 Mbit/s."""


class Frame(NamedTuple):
    """Access unit in Annex B format; `capture_ns` is UTC."""

    capture_ns: int
    key: bool
    unit: bytes


class DecodableFilter:
    """Filter for decodable /camera messages of one or more files.

    Passes pictures from the first key frame on; after a gap, from the next key frame on. Pictures
    with the same time are put APART_NS apart.
    """

    def __init__(self) -> None:
        self._waiting = self._begins = True
        self._last = -1
        self._capture_ns, self._more_ns = -1, 0

    def next_file(self) -> None:
        """Begin another file: its first picture has the number after the last one, or is a key
        frame."""
        self._begins, self._capture_ns = True, -1

    def frame(self, message: Message) -> Frame | None:
        """Return the picture of the next message; None if it cannot be decoded."""
        step = message.sequence - self._last
        if step > 1 or (self._begins and step != 1):
            self._waiting = True
        self._last, self._begins = message.sequence, False
        try:
            picture = codec.decode(messages.CAMERA, message.data)
        except messages.FormatError:
            self._waiting = True
            return None
        if not isinstance(picture, messages.Picture) or picture.coding != "h264":
            return None
        key = h264.is_key(picture.unit)
        self._waiting = self._waiting and not key
        if self._waiting:
            return None
        capture_ns = picture.capture_ns or message.log_ns
        self._more_ns = self._more_ns + APART_NS if capture_ns == self._capture_ns else 0
        self._capture_ns = capture_ns
        return Frame(capture_ns + self._more_ns, key, picture.unit)


@dataclass
class LeftOut:
    """Count of the recorded pictures since a time that a film lacks; `doubled`: those whose time
    is in the film already."""

    since_ns: int = 0
    count: int = 0
    doubled: int = 0

    def add(self, at_ns: int) -> None:
        """Count a picture that cannot be decoded."""
        self.count += self.since_ns <= at_ns


def frames(
    recording: Recording,
    start_ns: int = 0,
    end_ns: int = EVER_NS,
    left_out: LeftOut | None = None,
    decodable: DecodableFilter | None = None,
) -> Iterator[Frame]:
    """Yield the decodable pictures in this time range. Raises OSError.

    `left_out` counts all others. `decodable`: the filter of the files
    before this one.
    """
    decodable = decodable or DecodableFilter()
    decodable.next_file()
    for message in recording.messages({messages.CAMERA}, start_ns, end_ns):
        frame = decodable.frame(message)
        if frame is not None:
            yield frame
        elif left_out is not None:
            left_out.add(message.log_ns)


def frames_between(recording: Recording, start_ns: int, end_ns: int) -> list[Frame]:
    """Return the pictures captured from `start_ns` to before `end_ns`, with the preceding ones
    needed to decode them: from the last key frame at or before `start_ns`.

    Raises OSError, and RecordingError if the pictures exceed STRETCH_MOST.
    """
    pictures: list[Frame] = []
    for from_ns in (max(0, start_ns - LEAD_NS), 0):
        candidates = frames(recording, from_ns, end_ns + LATE_NS)
        pictures = _leading_up(candidates, start_ns, end_ns)
        if from_ns <= recording.start_ns or pictures and pictures[0].capture_ns <= start_ns:
            break
    return pictures


def each_second(recording: Recording, start_ns: int, end_ns: int) -> list[Frame]:
    """Return the first key frame of each second from `start_ns` to before `end_ns`.

    Raises OSError, and RecordingError if the pictures exceed STRETCH_MOST.
    """
    by_second, size = dict[int, Frame](), 0
    for frame in frames(recording, start_ns, end_ns + LATE_NS):
        second = (frame.capture_ns - start_ns) // SECOND_NS
        if frame.key and start_ns <= frame.capture_ns < end_ns and second not in by_second:
            by_second[second] = frame
            size += len(frame.unit)
            _refuse_more(size)
    return list(by_second.values())


def _leading_up(candidates: Iterable[Frame], start_ns: int, end_ns: int) -> list[Frame]:
    pictures, size = list[Frame](), 0
    for frame in candidates:
        if frame.capture_ns >= end_ns:
            continue
        if frame.key and frame.capture_ns <= start_ns:
            pictures, size = [], 0
        pictures.append(frame)
        size += len(frame.unit)
        _refuse_more(size)
    return pictures


def _refuse_more(size: int) -> None:
    if size > STRETCH_MOST:
        raise RecordingError(
            f"more than {STRETCH_MOST // MIB} MiB of pictures at once: ask for fewer "
            "seconds, or export the film"
        )
