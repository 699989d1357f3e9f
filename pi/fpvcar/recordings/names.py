"""The files of recordings in one folder: their names, and which may go. Pure.

    Plague-20261121T193100Z-0001.mcap        a minute that was closed and synced
    Plague-20261121T193100Z-0002.mcap.part   the one that is being written
    Plague-20261121T193100Z-0003.mcap.roll   of the last minute while recording is off
    NAME.mcap.ack     a base station has that file, verified and synced
    NAME.mcap.keep    "keep the last minute": the ring spares it until it has its .ack
    NAME.mcap.parked  nobody had the wheel or marked anything: it goes before drives

The time is when the recording began, in UTC; it and the number make the order. A clock
that stood wrong may have put the drive of now before all others.
"""

import re
import time
from collections.abc import Iterable
from typing import NamedTuple

SEALED, OPEN, ROLLING = ".mcap", ".mcap.part", ".mcap.roll"
NEW = ".new"
"""Behind a name: a clean copy that is not whole yet."""
MARKS = ACKNOWLEDGED, KEPT, PARKED = ".ack", ".keep", ".parked"
NEW_SHARE = 8
"""Of all files one in so many is too new to go before a drive."""
_NAME = re.compile(
    r"([A-Za-z0-9-]{1,24})-(\d{8}T\d{6}Z)-(\d{4,8})(\.mcap(?:\.part|\.roll)?)"
)
BILLION = 1_000_000_000
MEGA = 1_000_000


class Name(NamedTuple):
    """A file's name, taken apart. `text` is the whole name."""

    began: str
    number: int
    car: str
    suffix: str
    text: str

    @property
    def recording(self) -> str:
        """What all files of a recording begin with."""
        return f"{self.car}-{self.began}"


def recording_name(car: str, utc_ns: int) -> str:
    """A recording that begins now."""
    when = time.gmtime(max(0, utc_ns) // BILLION)
    return f"{car}-{time.strftime('%Y%m%dT%H%M%SZ', when)}"


def file_name(recording: str, number: int, suffix: str = SEALED) -> str:
    """A file of a recording; the first is number 1."""
    return f"{recording}-{number:04d}{suffix}"


def parse(text: str) -> Name | None:
    """A file's name; None for what is none of ours."""
    found = _NAME.fullmatch(text)
    if found is None:
        return None
    car, began, number, suffix = found.groups()
    return Name(began, int(number), car, suffix, text)


class File(NamedTuple):
    """One file in the folder."""

    name: Name
    size: int
    acknowledged: bool = False
    kept: bool = False
    parked: bool = False


def files_of(entries: Iterable[tuple[str, int]]) -> list[File]:
    """The recordings among (name, size) of a folder, the oldest first."""
    sizes = dict(entries)
    found = []
    for text, size in sizes.items():
        name = parse(text)
        if name is not None:
            marks = (text + mark in sizes for mark in MARKS)
            found.append(File(name, size, *marks))
    return sorted(found)


class Use(NamedTuple):
    """Bytes of recordings: of those that a base station has, and of all others."""

    spare: int = 0
    own: int = 0


def use_of(files: Iterable[File]) -> Use:
    """How much there is of both."""
    sizes = {True: 0, False: 0}
    for one in files:
        sizes[_fetched(one)] += one.size
    return Use(sizes[True], sizes[False])


def _fetched(one: File) -> bool:
    return one.acknowledged and one.name.suffix == SEALED


class Room(NamedTuple):
    """How much the ring may use: a floor of free space, and a cap. Bytes."""

    keep_free: int
    most: int

    def left(self, free: int, use: Use) -> int:
        """Bytes that may be written until something must go that is nowhere else."""
        return max(0, min(free + use.spare - self.keep_free, self.most - use.own))


class Verdict(NamedTuple):
    """What goes, in this order; `enough`: is there room to record afterwards?"""

    gone: tuple[str, ...]
    enough: bool


def make_room(
    files: Iterable[File], free: int, room: Room, station: bool, current: str = ""
) -> Verdict:
    """What the ring removes: acknowledged files, the oldest first; then, without a
    station, those that nobody keeps: parked ones that are not new, then the oldest.
    Those of the recording `current` are the newest. Never one that is open."""
    files = sorted(files)
    used = sum(one.size for one in files)
    sealed = [one for one in files if one.name.suffix == SEALED]
    may = [one for one in sealed if _fetched(one)]
    if not station:
        more = [one for one in sealed if not one.acknowledged and not one.kept]
        more.sort(key=lambda one: one.name.recording == current)
        new = {one.name for one in more[len(more) - len(more) // NEW_SHARE :]}
        may += sorted(more, key=lambda one: not one.parked or one.name in new)
    gone = []
    for one in may:
        if free >= room.keep_free and used <= room.most:
            break
        gone.append(one.name.text)
        free, used = free + one.size, used - one.size
    return Verdict(tuple(gone), free >= room.keep_free and used <= room.most)
