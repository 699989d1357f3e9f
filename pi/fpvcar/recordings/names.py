"""Names of recording files in one folder, and of their marks.

    Plague-20261121T193100Z-0001.mcap        a minute that was closed and synced
    Plague-20261121T193100Z-0002.mcap.part   the file being written
    Plague-20261121T193100Z-0003.mcap.roll   part of the last minute while recording is off
    NAME.mcap.ack     a base station has that file, verified and synced
    NAME.mcap.keep    "keep the last minute": the ring spares it until it has its .ack
    NAME.mcap.sums    its checksums: library/checksums.py
    NAME.mcap.parked  no driver and no mark: removed before drives

The time is the UTC start of the recording; it and the number define the order. If the clock was
wrong, the current drive may sort before all others.
"""

import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from fpvcar.runtime.units import SECOND_NS

SEALED, OPEN, ROLLING = ".mcap", ".mcap.part", ".mcap.roll"
MARKS = ACKNOWLEDGED, KEPT, PARKED = ".ack", ".keep", ".parked"
SUMS = ".sums"
BESIDE = (*MARKS, SUMS)
"""Side files, deleted before the file itself: a later file of that name must not inherit them."""
_NAME = re.compile(r"([A-Za-z0-9-]{1,24})-(\d{8}T\d{6}Z)-(\d{4,8})(\.mcap(?:\.part|\.roll)?)")


class Name(NamedTuple):
    """Parsed file name; `text` is the whole name."""

    began: str
    number: int
    car: str
    suffix: str
    text: str

    @property
    def recording(self) -> str:
        """Return the common prefix of all file names of a recording."""
        return f"{self.car}-{self.began}"


def recording_name(car: str, utc_ns: int) -> str:
    """Return the name of a recording that begins now."""
    when = time.gmtime(max(0, utc_ns) // SECOND_NS)
    return f"{car}-{time.strftime('%Y%m%dT%H%M%SZ', when)}"


def file_name(recording: str, number: int, suffix: str = SEALED) -> str:
    """Return the name of a recording's file; the first is number 1."""
    return f"{recording}-{number:04d}{suffix}"


def parse(text: str) -> Name | None:
    """Parse a file name; return None for foreign files."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    car, began, number, suffix = match.groups()
    return Name(began, int(number), car, suffix, text)


def stem(text: str) -> str:
    """Return a file name without the suffix that is removed on closing."""
    return text.removesuffix(OPEN).removesuffix(SEALED)


class File(NamedTuple):
    """File in the folder, with its marks."""

    name: Name
    size: int
    acknowledged: bool = False
    kept: bool = False
    parked: bool = False


def files_of(entries: Iterable[tuple[str, int]]) -> list[File]:
    """Return the recordings among (name, size) of a folder, oldest first."""
    sizes = dict(entries)
    recordings = []
    for text, size in sizes.items():
        name = parse(text)
        if name is not None:
            marks = (text + mark in sizes for mark in MARKS)
            recordings.append(File(name, size, *marks))
    return sorted(recordings)


Say = Callable[[str], None]
"""Function that prints a line for the user."""


def files(paths: Iterable[Path], say: Say) -> list[Path]:
    """Replace each folder by its recordings, oldest first. Raises OSError.

    `say` is called for a folder without recordings.
    """
    recordings: list[Path] = []
    for path in paths:
        if not path.is_dir():
            recordings.append(path)
            continue
        contents = files_of((entry.name, 0) for entry in path.iterdir())
        recordings += [path / entry.name.text for entry in contents]
        if not contents:
            say(f"{path}: no recordings in it")
    return recordings
