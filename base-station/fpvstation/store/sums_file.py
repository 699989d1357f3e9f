"""File SHA256SUMS of a session: one line for each segment that the store has to hold."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

SUMS_FILE = "SHA256SUMS"
LINE = re.compile(rb"([0-9a-f]{64})  ([^/\n]+)")


class StoredSegment(NamedTuple):
    """Segment in the store: its path and its checksum."""

    path: str
    sha256: str


class Listing(NamedTuple):
    """Content of one SHA256SUMS file."""

    lines: list[StoredSegment]
    """Every line that parses; a damaged file may name a segment twice."""
    damaged: list[bytes]
    """Lines that do not parse, kept byte by byte."""

    def stored(self) -> list[StoredSegment]:
        """Return the segments, each path once."""
        return [StoredSegment(*pair) for pair in dict(self.lines).items()]


def listing_of(session: str, text: bytes) -> Listing:
    """Parse the file of a session."""
    lines, damaged = list[StoredSegment](), list[bytes]()
    for line in text.split(b"\n"):
        match = LINE.fullmatch(line)
        try:
            name = match[2].decode() if match else ""
        except UnicodeDecodeError:
            name = ""
        if match and name:
            lines.append(StoredSegment(f"{session}/{name}", match[1].decode()))
        elif line:
            damaged.append(line)
    return Listing(lines, damaged)


def stored_in(session: str, text: bytes) -> list[StoredSegment]:
    """Return the segments that the file of a session names."""
    return listing_of(session, text).stored()


def text_of(stored: Iterable[StoredSegment], damaged: Sequence[bytes] = ()) -> bytes:
    """Return the content of the file in the format of `sha256sum -c`. Damaged lines keep their
    bytes and follow the others."""
    lines = [f"{sha256}  {path.rpartition('/')[2]}".encode() for path, sha256 in sorted(stored)]
    return b"".join(line + b"\n" for line in [*lines, *damaged])
