"""Reader for recordings in any state: unclosed, truncated, or with flipped bits.

    file -> walk: record by record; after an invalid record, search the next good chunk
         -> Recording: channels, spans of good chunks, damage
         -> messages() -> codec.decode

A chunk is valid if its CRC matches, if it has one, and its records fill it; otherwise all of it is
discarded. Messages outside chunks count in files of other writers only: fpvcar writes none. A file
that is being written is read up to its current end. The mcap library cannot do this: it rejects
unclosed files and stops at the first bad chunk.
"""

import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fpvcar.recordings import codec, messages
from fpvcar.recordings.gaps import Gap, GapDetector
from fpvcar.recordings.mcap import parsing, records
from fpvcar.recordings.mcap.chunks import Source, inner_records, known_chunk
from fpvcar.recordings.mcap.parsing import RecordError, RecordingError
from fpvcar.recordings.mcap.tail import tail_of
from fpvcar.recordings.mcap.walk import WINDOW, Damage, Record, Walk
from fpvcar.runtime.workers import Rest, no_rest

EVER_NS = 2**64 - 1
_HEAD = records.HEAD


def about_of(texts: dict[str, str]) -> messages.About | None:
    """Decode the metadata record, which has no CRC of its own; return None if invalid."""
    try:
        fields: dict[str, Any] = dict(texts)
        fields["profile"] = msgspec.json.decode(texts["profile"])
        return msgspec.convert(fields, messages.About, strict=False)
    except (KeyError, msgspec.DecodeError):
        return None


class Message(NamedTuple):
    """Message as stored in the file; decode `data` with codec.decode."""

    topic: str
    log_ns: int
    publish_ns: int
    sequence: int
    data: bytes


LOOSE_MOST = 1024 * 1024
"""Bytes of a span of messages outside chunks."""


class Span(NamedTuple):
    """Good chunk: position of its record, times and number of its messages.

    `loose`: consecutive message records outside chunks instead.
    """

    at: int
    length: int
    start_ns: int
    end_ns: int
    messages: int
    loose: bool = False


class Recording:
    """Contents of one file. The constructor reads all of it; `messages` reads selected parts again.

    Raises RecordingError if the file is not MCAP, OSError if it cannot be read, and PackageMissing
    if the library for its compression is not installed.
    """

    def __init__(self, source: Source) -> None:
        self.channels: dict[int, parsing.Channel] = {}
        self.schemas: dict[int, parsing.Schema] = {}
        self.chunks: list[Span] = []
        self.damage: list[Damage] = []
        self.counts: Counter[str] = Counter()
        """Number of messages by topic."""
        self.about: messages.About | None = None
        self.unverified = 0
        """Bytes of messages that no CRC covers, as other writers may store them."""
        self.gaps: list[Gap] = []
        """Gaps in the message numbers of a file written by fpvcar."""
        self.closed = False
        """True if summary and footer are present and valid."""
        self.was_closed = False
        """True if the file was closed at some time; without `closed`, its summary is invalid."""
        self.size = source.size
        self.tail: list[tuple[int, bytes]] = []
        """Records of the summary, as (opcode, body)."""
        self.data_end = b""
        """Data end record before the summary of a closed file."""
        self.metadata: dict[str, str] = {}
        """Content of the metadata record, not covered by any CRC."""
        self._source = source
        self._by_number: Counter[int] = Counter()
        self._sequences, self._chunk_keys = GapDetector(), set[tuple[int, int, int, int]]()
        self._read_tail()
        self._scan()

    def __enter__(self) -> "Recording":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._source.close()

    @property
    def start_ns(self) -> int:
        """Return the UTC time of the first message, 0 if empty."""
        return min((span.start_ns for span in self.chunks if span.messages), default=0)

    @property
    def end_ns(self) -> int:
        """Return the UTC time of the last message, 0 if empty."""
        return max((span.end_ns for span in self.chunks), default=0)

    @property
    def whole(self) -> bool:
        """Return whether the file is closed and undamaged."""
        return self.closed and not self.damage

    def messages(
        self, topics: Collection[str] | None = None, start_ns: int = 0, end_ns: int = EVER_NS
    ) -> Iterator[Message]:
        """Yield the messages in this time range in recorded order. Raises OSError.

        `topics` None selects all topics.
        """
        topic_of = {
            number: channel.topic
            for number, channel in self.channels.items()
            if topics is None or channel.topic in topics
        }
        for span in self.chunks:
            if span.end_ns >= start_ns and span.start_ns <= end_ns:
                for body in self._chunk(span):
                    message = _message(body, topic_of)
                    if message and start_ns <= message.log_ns <= end_ns:
                        yield message

    def chunk_bytes(self, span: Span) -> bytes:
        """Read the whole record of a good chunk, or loose messages, unchanged. Raises OSError."""
        return self._source.read(span.at, span.length)

    def head_at(self, at: int) -> tuple[int, int]:
        """Return opcode and channel of the message index at this position. Raises OSError."""
        head = self._source.read(at, _HEAD.size + 2).ljust(_HEAD.size + 2, b"\0")
        return head[0], int.from_bytes(head[_HEAD.size :], "little")

    def data_crc_holds(self) -> bool:
        """Return whether the data end's CRC is that of all bytes before it. Raises OSError."""
        crc = 0
        for at in range(0, self._end, WINDOW):
            crc = zlib.crc32(self._source.read(at, min(WINDOW, self._end - at)), crc)
        return crc == int.from_bytes(self.data_end[_HEAD.size :], "little")

    def _chunk(self, span: Span) -> Iterator[memoryview]:
        """Yield the bodies of a chunk's messages."""
        data = self.chunk_bytes(span)
        try:
            inner = memoryview(data) if span.loose else known_chunk(data[_HEAD.size :])
        except RecordError:  # was valid in the first scan
            return
        for opcode, body in inner_records(inner):
            if opcode == records.MESSAGE:
                yield body

    # --- first scan ---

    def _read_tail(self) -> None:
        """Read the summary if it is present and valid."""
        tail = tail_of(self._source)
        self._end = self.size
        if tail is None:
            return
        self.closed = self.was_closed = True
        self._end = tail.at
        self.tail, self.data_end = tail.records, tail.data_end
        for opcode, body in self.tail:
            self._note(opcode, body)

    def walk(self) -> Iterator[Record | Damage]:
        """Yield every record before the summary, and the damage. Raises OSError."""
        return Walk(self._source, self._end).steps()

    def _scan(self) -> None:
        summary, loose = self.tail, list[Span]()
        for step in self.walk():
            if isinstance(step, Damage):
                self.damage.append(step)
            elif step.opcode == records.CHUNK:
                self._note_chunk(step)
            elif step.opcode == records.MESSAGE:  # in foreign files, or a flipped bit
                _add_loose(loose, step)
            elif step.opcode == records.DATA_END and not self.closed:
                self.was_closed = True
                tail = tail_of(self._source, step.at + step.length)  # bytes before it were lost
                summary = tail.records if tail else []
            else:
                self._note(step.opcode, step.body)
        if not self.chunks and self.damage and self.damage[0].at == 0:
            raise RecordingError(_no_mcap(self._source))
        self._note_loose(loose)
        for number, count in self._by_number.items():
            if number in self.channels:
                self.counts[self.channels[number].topic] += count
        self.about = self.about or about_of(self.metadata)
        if self.about is not None:  # foreign files use their own numbering
            self.gaps = list(self._sequences.all(summary, self._by_number))

    def _note_loose(self, loose: list[Span]) -> None:
        """Accept the messages outside chunks, except in a file of fpvcar."""
        if self.about is not None:
            reason = "a message outside of a chunk: no CRC covers it"
            self.damage += [Damage(span.at, span.length, reason) for span in loose]
            self.damage.sort()
            return
        self.chunks = sorted([*self.chunks, *loose])
        for span in loose:
            self.unverified += span.length
            self._by_number += Counter(_number_and_time(body)[0] for body in self._chunk(span))

    def _note(self, opcode: int, body: bytes | memoryview) -> None:
        if opcode == records.SCHEMA:
            schema = parsing.take_schema(body)
            self.schemas.setdefault(schema.number, schema)
        elif opcode == records.CHANNEL:
            channel = parsing.take_channel(body)
            self.channels.setdefault(channel.number, channel)
        elif opcode == records.METADATA:
            name, texts = parsing.take_metadata(body)
            if name == messages.METADATA:
                self.metadata = self.metadata or texts

    def _note_chunk(self, record: Record) -> None:
        start_ns, end_ns = EVER_NS, 0
        about: list[memoryview] = []
        counts: Counter[int] = Counter()
        bodies: list[memoryview] = []
        try:
            for opcode, body in inner_records(record.inner):
                if opcode != records.MESSAGE:
                    self._note_verified(opcode, body)
                    continue
                bodies.append(body)
                number, log_ns = _number_and_time(body)
                start_ns, end_ns = min(start_ns, log_ns), max(end_ns, log_ns)
                counts[number] += 1
                channel = self.channels.get(number)
                if self.about is None and channel and channel.topic == messages.ABOUT:
                    about.append(body)
        except RecordError as fault:
            self.damage.append(Damage(record.at, record.length, str(fault)))
            return
        key = (zlib.crc32(record.inner), len(record.inner), start_ns, end_ns)
        if counts and key in self._chunk_keys:
            reason = "a copy of an earlier chunk"
            self.damage.append(Damage(record.at, record.length, reason, repeated=True))
            return
        self._chunk_keys.add(key)
        if parsing.take_chunk(record.body).crc == 0:
            self.unverified += record.length
        for body in bodies:
            self._sequences.note(body)
        self._by_number += counts
        start_ns, count = (start_ns, counts.total()) if counts else (0, 0)
        self.chunks.append(Span(record.at, record.length, start_ns, end_ns, count))
        for body in about:
            self.about = self.about or _about(bytes(body[records.MESSAGE_FIXED :]))

    def _note_verified(self, opcode: int, body: memoryview) -> None:
        """Store records covered by a chunk's CRC; they override records outside chunks."""
        if opcode == records.SCHEMA:
            schema = parsing.take_schema(body)
            self.schemas[schema.number] = schema
        elif opcode == records.CHANNEL:
            channel = parsing.take_channel(body)
            self.channels[channel.number] = channel


def _add_loose(spans: list[Span], record: Record) -> None:
    """Add a message outside chunks to the last span, if it follows, or begin another one."""
    _, log_ns = _number_and_time(memoryview(record.body))
    span = Span(record.at, record.length, log_ns, log_ns, 1, loose=True)
    last = spans[-1] if spans else None
    if last and last.at + last.length == span.at and last.length < LOOSE_MOST:
        times = min(last.start_ns, log_ns), max(last.end_ns, log_ns)
        span = Span(last.at, last.length + span.length, *times, last.messages + 1, loose=True)
        del spans[-1]
    spans.append(span)


def _number_and_time(body: memoryview) -> tuple[int, int]:
    number = int.from_bytes(body[:2], "little")
    return number, int.from_bytes(body[6:14], "little")


def _message(body: memoryview, topic_of: dict[int, str]) -> Message | None:
    topic = topic_of.get(int.from_bytes(body[:2], "little"))
    if topic is None or len(body) < records.MESSAGE_FIXED:
        return None
    sequence, log_ns = int.from_bytes(body[2:6], "little"), body[6:14]
    return Message(
        topic,
        int.from_bytes(log_ns, "little"),
        int.from_bytes(body[14:22], "little"),
        sequence,
        bytes(body[22:]),
    )


def _about(data: bytes) -> messages.About | None:
    try:
        message = codec.decode(messages.ABOUT, data)
    except messages.FormatError:
        return None
    return message if isinstance(message, messages.About) else None


def _no_mcap(source: Source) -> str:
    if source.size == 0:
        return "empty: power failed before any data was on the card"
    begin = source.read(0, 8)
    return f"no MCAP: begins with {begin.hex(' ')} (expected {records.MAGIC.hex(' ')})"


def read(path: Path, rest: Rest = no_rest) -> Recording:
    """Read the recording in a file; call `rest` before each piece.

    Raises RecordingError, OSError; both name the file.
    """
    source = Source(path, rest)
    try:
        return Recording(source)
    except RecordingError as fault:
        source.close()
        raise type(fault)(f"{path}: {fault}") from None
    except BaseException:
        source.close()
        raise
