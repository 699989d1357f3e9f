"""Says in words what a recording has lost."""

from collections.abc import Iterator
from pathlib import Path

from fpvcar.mcap.walk import Damage
from fpvcar.recordings import names
from fpvcar.recordings.export.tables import utc_text
from fpvcar.recordings.reader import Recording

INCOMPLETE = 3
"""Exit status of a command that did its work, but whose input has lost something."""


def missing_messages(recording: Recording) -> Iterator[str]:
    """Says which messages are missing, and from when to when."""
    for gap in recording.gaps:
        channel = recording.channels.get(gap.number)
        topic = channel.topic if channel else f"channel {gap.number}"
        where = "at the beginning or the end"
        if gap.after_ns:
            where = f"from {utc_text(gap.after_ns)} to {utc_text(gap.before_ns)}"
        yield f"{topic}: {gap.lost} messages are missing {where}"


def damaged_at_ns(recording: Recording, damage: Damage) -> int:
    """UTC of the last good message before a damaged place, or of the first one."""
    before = (span.end_ns for span in recording.chunks if span.at < damage.at)
    return max(before, default=recording.start_ns)


def unclosed(recording: Recording) -> str:
    """Says what is wrong with a recording's end; "" if nothing is."""
    if recording.closed:
        return ""
    return "its summary does not hold" if recording.was_closed else "never closed"


def losses(path: Path, recording: Recording) -> Iterator[str]:
    """Says what a file has lost."""
    if not recording.closed:
        last = utc_text(recording.end_ns)
        yield f"{path}: {unclosed(recording)}; what is in it ends at {last}"
    for one in recording.damage:
        where = utc_text(damaged_at_ns(recording, one))
        verb = "are there twice" if one.repeated else "are missing"
        yield f"{path}: {one.length} bytes {verb} at {where} ({one.what})"
    for words in missing_messages(recording):
        yield f"{path}: {words}"


def incomplete(recording: Recording) -> bool:
    """Is anything known to be missing? What stands there twice is not, and a file that
    was never closed has all that was synced."""
    return bool(recording.gaps) or any(not one.repeated for one in recording.damage)


def cut_short(path: Path, recording: Recording) -> bool:
    """Return whether a file is incomplete, or was closed once and has lost its end. A
    file that the recorder was still writing when power went is neither, nor is one
    whose summary does not hold because a chunk is there twice."""
    still_open = path.name.endswith((names.OPEN, names.ROLLING))
    explained = recording.closed or still_open or recording.damage
    return incomplete(recording) or not explained


def missing(recording: Recording) -> list[str]:
    """Says in brief what a recording has lost."""
    words = [] if recording.closed else [unclosed(recording)]
    for one in recording.damage:
        words.append(f"{one.length} bytes at {one.at} are damaged ({one.what})")
    return [*words, *missing_messages(recording)]
