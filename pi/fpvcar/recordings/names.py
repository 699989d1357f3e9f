"""Names the files of recordings in one folder, and their marks.

    Plague-20261121T193100Z-0001.mcap        a minute that was closed and synced
    Plague-20261121T193100Z-0002.mcap.part   the one that is being written
    Plague-20261121T193100Z-0003.mcap.roll   of the last minute while recording is off
    NAME.mcap.ack     a base station has that file, verified and synced
    NAME.mcap.keep    "keep the last minute": the ring spares it until it has its .ack
    NAME.mcap.sums    its checksums: sums.py
    NAME.mcap.parked  nobody had the wheel or marked anything: it goes before drives

The time is when the recording began, in UTC; it and the number make the order. A clock
that stood wrong may have put the drive of now before all others.
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
"""What goes before the file itself: no later file of that name finds them."""
_NAME = re.compile(r"([A-Za-z0-9-]{1,24})-(\d{8}T\d{6}Z)-(\d{4,8})(\.mcap(?:\.part|\.roll)?)")


class Name(NamedTuple):
    """A file's name, taken apart. `text` is the whole name."""

    began: str
    number: int
    car: str
    suffix: str
    text: str

    @property
    def recording(self) -> str:
        """What the names of all files of a recording begin with."""
        return f"{self.car}-{self.began}"


def recording_name(car: str, utc_ns: int) -> str:
    """Names a recording that begins now."""
    when = time.gmtime(max(0, utc_ns) // SECOND_NS)
    return f"{car}-{time.strftime('%Y%m%dT%H%M%SZ', when)}"


def file_name(recording: str, number: int, suffix: str = SEALED) -> str:
    """Names a file of a recording; the first is number 1."""
    return f"{recording}-{number:04d}{suffix}"


def parse(text: str) -> Name | None:
    """Takes a file's name apart; None for what is none of ours."""
    found = _NAME.fullmatch(text)
    if found is None:
        return None
    car, began, number, suffix = found.groups()
    return Name(began, int(number), car, suffix, text)


def stem(text: str) -> str:
    """A file's name without the suffix that it loses when it is closed."""
    return text.removesuffix(OPEN).removesuffix(SEALED)


class File(NamedTuple):
    """One file in the folder, and which marks it has."""

    name: Name
    size: int
    acknowledged: bool = False
    kept: bool = False
    parked: bool = False


def files_of(entries: Iterable[tuple[str, int]]) -> list[File]:
    """Finds the recordings among (name, size) of a folder, the oldest first."""
    sizes = dict(entries)
    found = []
    for text, size in sizes.items():
        name = parse(text)
        if name is not None:
            marks = (text + mark in sizes for mark in MARKS)
            found.append(File(name, size, *marks))
    return sorted(found)


def files(paths: Iterable[Path], say: Callable[[str], None]) -> list[Path]:
    """Replaces each folder by the recordings in it, the oldest first.

    `say` hears of a folder that has none. Raises OSError.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = files_of((one.name, 0) for one in path.iterdir())
        found += [path / one.name.text for one in inside]
        if not inside:
            say(f"{path}: no recordings in it")
    return found
