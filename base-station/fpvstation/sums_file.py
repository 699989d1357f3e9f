"""SHA256SUMS of a session: what it has to have, a line for each segment."""

import re
from collections.abc import Iterable
from typing import NamedTuple

SUMS_FILE = "SHA256SUMS"
LINE = re.compile(r"([0-9a-f]{64})  ([^/\n]+)")


class Stored(NamedTuple):
    """A segment in the store: where, and what it has to be."""

    path: str
    sha256: str


def stored_in(session: str, text: bytes) -> list[Stored]:
    """What the file of a session says; lines that are none are left out."""
    found = map(LINE.fullmatch, text.decode("utf-8", "replace").splitlines())
    return [Stored(f"{session}/{one[2]}", one[1]) for one in found if one]


def text_of(stored: Iterable[Stored]) -> bytes:
    """What the file says, as `sha256sum -c` reads it."""
    lines = (f"{one.sha256}  {one.path.rpartition('/')[2]}\n" for one in sorted(stored))
    return "".join(lines).encode()
