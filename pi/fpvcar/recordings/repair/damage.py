"""Descriptions of the losses of a recording."""

from collections.abc import Iterator
from pathlib import Path

from fpvcar.recordings import names
from fpvcar.recordings.export.tables import utc_text
from fpvcar.recordings.mcap.walk import Damage
from fpvcar.recordings.reader import Recording
from fpvcar.runtime.texts import SAYS, Phrase, Text

LOST_END = Phrase("lost_end", "{name}: {reason}; its data ends at {time}")
LOST_MESSAGES = Phrase(
    "lost_messages", "{topic}: {count} messages are missing from {start} to {end}"
)
LOST_EDGE = Phrase("lost_edge", "{topic}: {count} messages are missing at the beginning or the end")

INCOMPLETE = 3
"""Exit status of a command that succeeded on incomplete input."""
SUMMARY = Text("lost_summary", "its summary does not hold")
UNCLOSED = Text("lost_unclosed", "never closed")
MISSING = Phrase("lost_bytes", "{name}: {count} bytes are missing at {time} ({reason})")
TWICE = Phrase("lost_twice", "{name}: {count} bytes are there twice at {time} ({reason})")


def missing_messages(recording: Recording) -> Iterator[Text]:
    """Yield a description of each gap: topic, number of messages, times."""
    for gap in recording.gaps:
        channel = recording.channels.get(gap.number)
        topic = channel.topic if channel else f"channel {gap.number}"
        if gap.after_ns:
            start, end = utc_text(gap.after_ns), utc_text(gap.before_ns)
            yield LOST_MESSAGES(topic=topic, count=gap.lost, start=start, end=end)
        else:
            yield LOST_EDGE(topic=topic, count=gap.lost)


def damaged_at_ns(recording: Recording, damage: Damage) -> int:
    """Return the UTC time of the last good message before the damage, or of the first message."""
    before = (span.end_ns for span in recording.chunks if span.at < damage.at)
    return max(before, default=recording.start_ns)


def unclosed(recording: Recording) -> Text | None:
    """Describe the problem at a recording's end; return None if it is closed properly."""
    if recording.closed:
        return None
    return SUMMARY if recording.was_closed else UNCLOSED


def losses(path: Path, recording: Recording) -> Iterator[Text]:
    """Yield descriptions of all losses of a file."""
    if not recording.closed:
        last = utc_text(recording.end_ns)
        yield LOST_END(name=path, reason=unclosed(recording), time=last)
    for damage in recording.damage:
        time = utc_text(damaged_at_ns(recording, damage))
        phrase = TWICE if damage.repeated else MISSING
        yield phrase(name=path, count=damage.length, time=time, reason=damage.reason)
    for words in missing_messages(recording):
        yield SAYS(place=path, reason=words)


def incomplete(recording: Recording) -> bool:
    """Return whether data is known to be missing.

    Repeated chunks do not count. A file that was never closed contains all synced data.
    """
    return bool(recording.gaps) or any(not damage.repeated for damage in recording.damage)


def cut_short(path: Path, recording: Recording) -> bool:
    """Return whether a file is incomplete, or was once closed and has lost its end.

    A file that was still open at a power failure does not count. Neither does an invalid summary
    caused by a repeated chunk.
    """
    still_open = path.name.endswith((names.OPEN, names.ROLLING))
    explained = recording.closed or still_open or recording.damage
    return incomplete(recording) or not explained


def missing(recording: Recording) -> list[str]:
    """Return short descriptions of all losses."""
    lines = [] if recording.closed else [str(unclosed(recording))]
    for damage in recording.damage:
        lines.append(f"{damage.length} bytes at {damage.at} are damaged ({damage.reason})")
    return [*lines, *map(str, missing_messages(recording))]
