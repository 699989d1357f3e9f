"""Reads a recording in brief, for lists: of a closed file only its two ends."""

from pathlib import Path
from typing import NamedTuple

from fpvcar.mcap import parsing, records
from fpvcar.mcap.chunks import FileSource, Source
from fpvcar.mcap.tail import Tail, tail_of
from fpvcar.mcap.walk import WINDOW, Damage, Walk
from fpvcar.recordings import messages, reader
from fpvcar.recordings.reader import about_of


class Overview(NamedTuple):
    """What a list shows of a file. `counts` are messages by topic."""

    start_ns: int
    end_ns: int
    size: int
    closed: bool
    counts: dict[str, int]
    about: messages.About | None


def overview_of(path: Path) -> Overview:
    """Reads only head and summary of a closed file, so that a list of a thousand is
    quick; the others it reads whole. Raises ReadError, OSError."""
    source = FileSource(path)
    try:
        tail = tail_of(source)
        if tail is not None:
            found = closed_overview(source, tail)
            if found is not None:
                return found
    finally:
        source.close()
    with reader.read(path) as whole:
        return Overview(
            whole.start_ns, whole.end_ns, whole.size, whole.closed,
            dict(whole.counts), whole.about,
        )  # fmt: skip


def closed_overview(source: Source, tail: Tail) -> Overview | None:
    """What the two ends of a closed file say; None where they have no statistics.
    Raises Damaged, OSError."""
    by = {op: body for op, body in tail.records if op == records.STATISTICS}
    if not by:
        return None
    counts = parsing.take_counts(by[records.STATISTICS])
    topics = {}
    for opcode, body in tail.records:
        if opcode == records.CHANNEL:
            channel = parsing.take_channel(body)
            topics[channel.topic] = counts.messages.get(channel.number, 0)
    texts: dict[str, str] = {}
    for one in Walk(source, min(tail.at, WINDOW)).steps():
        if isinstance(one, Damage) or one.opcode == records.CHUNK:
            break
        if one.opcode == records.METADATA:
            name, found = parsing.take_metadata(one.body)
            texts = found if name == messages.METADATA else texts
    return Overview(
        counts.start_ns, counts.end_ns, source.size, True, topics, about_of(texts)
    )
