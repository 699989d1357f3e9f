"""Summary of one recording for the list, including its driver stints."""

from collections.abc import Collection, Iterable
from pathlib import Path

from msgspec import Struct

from fpvcar.library import driver_spans
from fpvcar.library.index import Stamp
from fpvcar.recordings import codec, messages, reader
from fpvcar.recordings.mcap import parsing, records
from fpvcar.recordings.mcap.chunks import CHUNK_MOST, Source, good_chunk, inner_records
from fpvcar.recordings.mcap.parsing import RecordError
from fpvcar.recordings.mcap.tail import Tail, tail_of
from fpvcar.recordings.messages import Mark, Stint
from fpvcar.recordings.overview import Overview, closed_overview, overview_of
from fpvcar.recordings.reader import Recording
from fpvcar.recordings.repair.damage import missing
from fpvcar.runtime.units import SECOND_NS
from fpvcar.runtime.workers import Rest, no_rest

BRIEF = frozenset({messages.MARK, messages.STINTS})
StoredMessage = tuple[str, int, bytes]
"""Topic, log_ns and data of a message."""


class Entry(Struct, frozen=True):
    """Summary of one file. `state` is "closed", "open" (being written) or "damaged".

    `lost` describes the damage. `messages` counts all messages. `stints` is None if the file has no
    steps: the driver is unknown.
    """

    name: str
    start_ms: float
    seconds: float
    bytes: int
    state: str
    messages: int
    lost: str = ""
    marks: tuple[Mark, ...] = ()
    pictures: int = 0
    stints: tuple[Stint, ...] | None = None

    @property
    def unreadable(self) -> bool:
        """True if no data of the file can be read."""
        return self.state == "damaged" and not self.messages


def entry_of(path: Path, rest: Rest = no_rest) -> Entry:
    """Summarise a file that is no longer written to.

    If the file must be read whole, `rest` is called before each piece. Raises RecordingError,
    RecordError, OSError.
    """
    source = Source(path)
    try:
        tail = tail_of(source)
        if tail is None:
            return _whole_entry(path, rest)
        brief = closed_overview(source, tail) or overview_of(path)
        if not brief.closed:
            return _whole_entry(path, rest)
        stored = list(_indexed_messages(source, tail, BRIEF))
    finally:
        source.close()
    marks = [(log_ns, data) for topic, log_ns, data in stored if topic == messages.MARK]
    return Entry(
        path.name,
        brief.start_ns / 1e6,
        (brief.end_ns - brief.start_ns) / SECOND_NS,
        brief.size,
        "closed",
        sum(brief.counts.values()),
        "",
        _marks(marks, brief.start_ns),
        brief.counts.get(messages.CAMERA, 0),
        _stints(path, brief, stored, rest),
    )


def open_entry(path: Path, stamp: Stamp, rest: Rest) -> Entry:
    """Summarise a file that is being written, up to its last write. Raises as entry_of."""
    with reader.read(path, rest) as recording:
        start_ns = recording.start_ns or stamp.changed_ns
        seconds = max(0, (recording.end_ns or stamp.changed_ns) - start_ns) / SECOND_NS
        return Entry(
            path.name,
            start_ns / 1e6,
            seconds,
            stamp.size,
            "open",
            recording.counts.total(),
            "",
            _marks(_marked(recording), start_ns),
            recording.counts[messages.CAMERA],
            driver_spans.stints_of(recording),
        )


def _whole_entry(path: Path, rest: Rest) -> Entry:
    with reader.read(path, rest) as recording:
        return Entry(
            path.name,
            recording.start_ns / 1e6,
            (recording.end_ns - recording.start_ns) / SECOND_NS,
            recording.size,
            "damaged",
            recording.counts.total(),
            "; ".join(missing(recording)),
            _marks(_marked(recording), recording.start_ns),
            recording.counts[messages.CAMERA],
            driver_spans.stints_of(recording),
        )


def _stints(
    path: Path, brief: Overview, stored: Iterable[StoredMessage], rest: Rest
) -> tuple[Stint, ...] | None:
    """Return the stints the recorder stored at the end of a file, or a tally of its steps."""
    for topic, _, data in stored:
        if topic == messages.STINTS:
            try:
                message = codec.decode(topic, data)
            except messages.FormatError:
                break
            return message.stints if isinstance(message, messages.Stints) else None
    if not brief.counts.get(messages.STEP):
        return None
    with reader.read(path, rest) as recording:
        return driver_spans.stints_of(recording)


def _marked(recording: Recording) -> Iterable[tuple[int, bytes]]:
    return ((message.log_ns, message.data) for message in recording.messages({messages.MARK}))


def _marks(marked: Iterable[tuple[int, bytes]], start_ns: int) -> tuple[Mark, ...]:
    marks = []
    for log_ns, data in marked:
        try:
            event = codec.decode(messages.MARK, data)
        except messages.FormatError:
            continue
        if isinstance(event, messages.Event):
            marks.append(Mark((log_ns - start_ns) / SECOND_NS, event.text))
    return tuple(marks)


def _indexed_messages(
    source: Source, tail: Tail, topics: Collection[str]
) -> Iterable[StoredMessage]:
    """Yield the messages on these topics, located by the summary's chunk index.

    Raises RecordError, OSError.
    """
    topic_of = {
        channel.number: channel.topic for channel in tail.channels if channel.topic in topics
    }
    for opcode, body in tail.records:
        if opcode != records.CHUNK_INDEX or not topic_of:
            continue
        fields = parsing.Fields(body)
        fields.take(16)
        at, length = fields.number(8), fields.number(8)
        if not topic_of.keys().isdisjoint(_indexed(fields)) and length <= CHUNK_MOST:
            yield from _messages(source.read(at, length), topic_of)


def _indexed(fields: parsing.Fields) -> set[int]:
    """Return the channels that have messages in a chunk."""
    inner, numbers = parsing.Fields(fields.take(fields.number(4))), set()
    while inner.left:
        numbers.add(inner.number(2))
        inner.take(8)
    return numbers


def _messages(chunk: bytes, topic_of: dict[int, str]) -> Iterable[StoredMessage]:
    try:
        inner = good_chunk(chunk[records.HEAD.size :])
    except RecordError:
        return
    for opcode, body in inner_records(inner):
        topic = topic_of.get(int.from_bytes(body[:2], "little"))
        if opcode == records.MESSAGE and topic is not None:
            log_ns = int.from_bytes(body[6:14], "little")
            yield topic, log_ns, bytes(body[records.MESSAGE_FIXED :])
