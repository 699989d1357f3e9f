"""Recording, read for a dataset: its frames, signals, drivers, stops and marks.

/camera            -> captures, keys
/step              -> wish, the gate's output, volts, causes of stops
/range/, /battery  -> newest measurements
other JSON topics  -> each of their numbers, such as positions of servos
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fpvcar.datasets.grid import Size, Span
from fpvcar.library.driver_spans import Tally, cause_of, top_mps
from fpvcar.recordings import codec, messages, reader
from fpvcar.recordings.export.export import File
from fpvcar.recordings.export.mp4 import check, sets_of
from fpvcar.recordings.export.pictures import DecodableFilter, Frame, frames
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.overview import overview_of
from fpvcar.recordings.reader import Message, Recording
from fpvcar.runtime.units import SECOND_NS
from fpvcar.video import h264
from fpvcar.video.syntax import shape_of

HELD_NS = SECOND_NS
"""Age from which a measurement is unknown; the state keeps its last value."""
FAR_M = 10.0
"""Range of a sensor without a target."""
LATE_NS = 2 * SECOND_NS
"""Most time between the capture of a frame and its recording."""
WISH, GATE, VOLTS = ("wish_throttle", "wish_steer"), ("gate_throttle", "gate_steer"), "battery_v"
READ = {messages.CAMERA, messages.STEP, messages.DRIVER, messages.MARK, messages.BATTERY}
UNUSED = {
    *(messages.ABOUT, messages.WISH, messages.LIGHTS, messages.BUTTONS),
    *(messages.HEALTH, messages.LATENCY, messages.STINTS, messages.PLOT, messages.EVENT),
    *(messages.TRANSFORMS, messages.CALIBRATION),
}


def range_column(topic: str) -> str:
    """Return the column of a range sensor: "/range/front" becomes range_front_m."""
    return f"range_{topic.removeprefix(messages.RANGE)}_m"


def is_other(topic: str, coding: str) -> bool:
    """Return whether a topic's numbers are columns of the state as they are."""
    own = topic in READ | UNUSED or topic.startswith((messages.RANGE, messages.POINTS))
    return coding == "json" and not own


def numbers(topic: str, data: bytes) -> dict[str, float]:
    """Return the numbers in a JSON message by column: "/servo/pan" becomes servo_pan.deg."""
    try:
        return dict(_leaves(topic.strip("/").replace("/", "_"), msgspec.json.decode(data)))
    except (msgspec.DecodeError, RecursionError):
        return {}


def _leaves(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}", inner)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            label = inner.get("name", at) if isinstance(inner, dict) else at
            yield from _leaves(f"{name}.{label}", inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, float(value)


class Signal:
    """Values of one column in the order of their times."""

    def __init__(self) -> None:
        self._times, self._values = array("q"), array("d")

    def add(self, at_ns: int, value: float | None) -> None:
        """Append a value; None ends the validity of the last one."""
        if self._times and at_ns < self._times[-1]:
            return  # a file that was given twice
        self._times.append(at_ns)
        self._values.append(float("nan") if value is None else value)

    def at(self, time_ns: int) -> tuple[float, bool]:
        """Return the newest known value at a time, 0 before the first; and whether it is fresh."""
        last = at = bisect_right(self._times, time_ns) - 1
        while at >= 0 and self._values[at] != self._values[at]:
            at -= 1
        if at < 0:
            return 0.0, False
        return self._values[at], at == last and time_ns - self._times[at] <= HELD_NS


class Row(NamedTuple):
    """Values at one tick. `unknown`: columns of the state that were not measured lately."""

    action: list[float]
    state: list[float]
    stop: str
    unknown: list[str]


class Session:
    """Contents of one recording; `read` fills them in file by file."""

    def __init__(self, name: str, files: Sequence[File]) -> None:
        self.name, self.files, self.car = name, files, ""
        self.captures, self.keys = array("q"), array("b")
        self.size = Size(0, 0)
        """Size of the first frame."""
        self.marks: list[tuple[int, str]] = []
        self.spans: list[Span] = []
        self._signals: dict[str, Signal] = {}
        self._stops: list[tuple[int, str]] = [(0, "")]
        self._tally = Tally(top_mps(None))

    def read(self, opened: Iterable[Recording]) -> Iterator[int]:
        """Read the recording; yield the size of each message. Raises OSError."""
        decodable = DecodableFilter()
        for recording in opened:
            self.car = self.car or (recording.about.car if recording.about else "")
            decodable.next_file()
            others = other_topics(recording)
            ranges = {topic for topic in recording.counts if topic.startswith(messages.RANGE)}
            for message in recording.messages(READ | others | ranges):
                yield len(message.data)
                if message.topic == messages.CAMERA:
                    self._frame(decodable.frame(message))
                elif message.topic in others:
                    for column, value in numbers(message.topic, message.data).items():
                        self._signal(column).add(message.log_ns, value)
                else:
                    self._note(message)
        stints = self._tally.stints()
        self.spans = [Span(stint.from_ns, stint.to_ns, stint.name) for stint in stints]
        if not self._tally.has_steps and self.captures:  # a recording of another program
            self.spans = [Span(self.captures[0], self.captures[-1], "")]

    def _frame(self, frame: Frame | None) -> None:
        if frame is None or (self.captures and frame.capture_ns <= self.captures[-1]):
            return
        if not self.captures:
            sets = sets_of(h264.nal_units(frame.unit))
            try:
                check(sets)
                self.size = Size(*shape_of(sets.sps[0])[:2])
            except ValueError as fault:
                raise RecordingError(f"{self.name}: its video cannot be used: {fault}") from None
        self.captures.append(frame.capture_ns)
        self.keys.append(frame.key)

    def _signal(self, column: str) -> Signal:
        return self._signals.setdefault(column, Signal())

    def _note(self, message: Message) -> None:
        try:
            decoded = codec.decode(message.topic, message.data)
        except messages.FormatError:
            return
        now_ns = message.log_ns
        self._tally.note(now_ns, decoded)
        if isinstance(decoded, messages.Event):
            self.marks.append((now_ns, decoded.text))
        elif isinstance(decoded, messages.Battery):
            self._signal(VOLTS).add(now_ns, decoded.volts)
        elif isinstance(decoded, messages.Reading):
            far_m = FAR_M if decoded.range_m is None else decoded.range_m
            good = decoded.state == "ok"
            self._signal(range_column(message.topic)).add(now_ns, far_m if good else None)
        elif isinstance(decoded, messages.Step):
            wish = decoded.wish or messages.Wish(0.0, 0.0, None)
            values = (wish.throttle, wish.steer, decoded.throttle, decoded.steer)
            for column, value in zip((*WISH, *GATE), values, strict=True):
                self._signal(column).add(now_ns, value)
            if decoded.volts is not None:
                self._signal(VOLTS).add(now_ns, decoded.volts)
            cause = cause_of(decoded) or ""
            if cause != self._stops[-1][1]:
                self._stops.append((now_ns, cause))

    def row(self, time_ns: int, columns: Sequence[str]) -> Row:
        """Return the newest values at a time; `columns` are those of the state."""
        none = Signal()
        action = [self._signals.get(name, none).at(time_ns)[0] for name in WISH]
        state = [self._signals.get(name, none).at(time_ns) for name in columns]
        unknown = [name for name, (_, fresh) in zip(columns, state, strict=True) if not fresh]
        stop = self._stops[bisect_right(self._stops, time_ns, key=lambda stop: stop[0]) - 1][1]
        return Row(action, [value for value, _ in state], stop, unknown)

    def frames(self, first: int, end: int) -> Iterator[tuple[int, Frame]]:
        """Yield the frames `first` to before `end` with their numbers, and before them those that a
        decoder needs. Raises OSError, and RecordingError if a frame is no longer there."""
        while first and not self.keys[first]:
            first -= 1
        wanted = self.captures[first:end]
        at, decodable = 0, DecodableFilter()
        for file in self.files:
            if at == len(wanted) or (file.end_ns and file.end_ns < wanted[at]):
                continue
            if file.end_ns and file.start_ns > wanted[-1] + LATE_NS:
                break
            with reader.read(file.path) as recording:
                until_ns = wanted[-1] + LATE_NS
                for frame in frames(recording, wanted[0], until_ns, None, decodable):
                    if at < len(wanted) and frame.capture_ns == wanted[at]:
                        yield first + at, frame
                        at += 1
        if at < len(wanted):
            raise RecordingError(f"{self.name} has changed meanwhile: export it again")


def other_topics(recording: Recording) -> set[str]:
    """Return the topics of a recording whose numbers are columns of the state."""
    if recording.about is None:
        return set()
    channels = recording.channels.values()
    return {one.topic for one in channels if is_other(one.topic, one.coding)}


def state_columns(paths: Iterable[Path]) -> list[str]:
    """Return the columns of the state of all these recordings together. Raises RecordingError,
    OSError."""
    ranges, others, known = set[str](), set[str](), set[str]()
    for path in paths:
        counts = overview_of(path).counts
        topics = {topic for topic, count in counts.items() if count}
        ranges |= {range_column(topic) for topic in topics if topic.startswith(messages.RANGE)}
        new = {topic for topic in topics - known if is_other(topic, "json")}
        known |= topics
        if new:
            with reader.read(path) as recording:
                for topic in new & other_topics(recording):
                    first = next(recording.messages({topic}), None)
                    others |= numbers(topic, first.data).keys() if first else set()
    return [*GATE, VOLTS, *sorted(ranges), *sorted(others)]
