"""Short summary of a recording for lists; for a closed file, only its two ends are read."""

from pathlib import Path
from typing import NamedTuple

from fpvcar.recordings import messages, reader
from fpvcar.recordings.mcap import parsing, records
from fpvcar.recordings.mcap.chunks import Source
from fpvcar.recordings.mcap.tail import Tail, tail_of
from fpvcar.recordings.mcap.walk import WINDOW, Damage, Walk
from fpvcar.recordings.reader import about_of


class Overview(NamedTuple):
    """Summary of a file in a list; `counts` are messages by topic."""

    start_ns: int
    end_ns: int
    size: int
    closed: bool
    counts: dict[str, int]
    about: messages.About | None


def overview_of(path: Path) -> Overview:
    """Summarise a file; a closed one is read only at its head and summary. Raises RecordingError,
    OSError.

    This makes a list of a thousand files quick. Other files are read whole.
    """
    source = Source(path)
    try:
        tail = tail_of(source)
        if tail is not None:
            overview = closed_overview(source, tail)
            if overview is not None:
                return overview._replace(about=_about(source, tail))
    finally:
        source.close()
    with reader.read(path) as recording:
        return Overview(
            recording.start_ns,
            recording.end_ns,
            recording.size,
            recording.closed,
            dict(recording.counts),
            recording.about,
        )


def closed_overview(source: Source, tail: Tail) -> Overview | None:
    """Summarise a closed file from its summary, without `about`. Raises RecordError.

    Returns None if the summary has no statistics, or does not repeat their channels.
    """
    bodies = {op: body for op, body in tail.records if op == records.STATISTICS}
    if not bodies:
        return None
    counts = parsing.take_counts(bodies[records.STATISTICS])
    channels = {channel.number: channel.topic for channel in tail.channels}
    if not counts.messages.keys() <= channels.keys():
        return None
    topics: dict[str, int] = {}
    for number, topic in channels.items():  # several may have one topic
        topics[topic] = topics.get(topic, 0) + counts.messages.get(number, 0)
    return Overview(counts.start_ns, counts.end_ns, source.size, True, topics, None)


def _about(source: Source, tail: Tail) -> messages.About | None:
    """Return the metadata before the first chunk of a closed file. Raises OSError."""
    texts: dict[str, str] = {}
    for step in Walk(source, min(tail.at, WINDOW)).steps():
        if isinstance(step, Damage) or step.opcode == records.CHUNK:
            break
        if step.opcode == records.METADATA:
            name, entries = parsing.take_metadata(step.body)
            texts = entries if name == messages.METADATA else texts
    return about_of(texts)
