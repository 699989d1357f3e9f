"""What is true of a whole file beyond the CRCs of its chunks, which were looked at.

Files of others may have no CRC at a chunk, and one of all their data instead. The
metadata has none: it has to say what the first chunks say, too.
"""

from collections.abc import Iterator
from typing import NamedTuple

from fpvcar.mcap import records
from fpvcar.mcap.parsing import Fields
from fpvcar.recordings import messages
from fpvcar.recordings.reader import Recording, about_of


class Vouched(NamedTuple):
    """`doubts` are what does not hold, in words; `words` say what vouches for it."""

    doubts: list[str]
    words: str


def vouched(recording: Recording) -> Vouched:
    """Only of files that were closed and are whole. Raises OSError."""
    doubts, words = list(_metadata(recording)), "every CRC holds"
    data = recording.data_crc()
    if data is None:
        doubts.append("no data end before the summary")
    elif data.said and data.said != data.found:
        doubts.append(f"the CRC of all data is {data.found:08x}, not {data.said:08x}")
    elif not data.said and recording.without_crc:
        words = f"{recording.without_crc} of these chunks have no CRC"
    elif not (data.said or recording.chunks):
        words = "there is no CRC in it"
    return Vouched(doubts, words)


def _metadata(recording: Recording) -> Iterator[str]:
    """Where the summary, or the file, has ours."""
    index = any(
        opcode == records.METADATA_INDEX and _index_name(body) == messages.METADATA
        for opcode, body in recording.tail
    )
    if recording.about is not None and (index or recording.metadata):
        if about_of(recording.metadata) != recording.about:
            yield "its metadata is not what /recording says"


def _index_name(body: bytes) -> str:
    of = Fields(body)
    of.take(16)
    return of.text()
