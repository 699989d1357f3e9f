"""Decides which recordings leave a card that is full, and how much room is left."""

import errno
import logging
from collections.abc import Collection, Iterable
from typing import NamedTuple

from fpvcar import config
from fpvcar.recorder.folder import FolderLike
from fpvcar.recordings import names
from fpvcar.runtime.units import MB

log = logging.getLogger("fpvcar.recorder")
NEW_SHARE = 8
"""One in so many files is too new to go before a drive."""


class Use(NamedTuple):
    """Bytes of recordings: those that a base station has, and all others."""

    spare: int = 0
    own: int = 0


def use_of(files: Iterable[names.File]) -> Use:
    """Adds up both."""
    sizes = {True: 0, False: 0}
    for one in files:
        sizes[one.acknowledged] += one.size
    return Use(sizes[True], sizes[False])


class Room(NamedTuple):
    """How many bytes the ring may use: a floor of free space, and a cap."""

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
    files: Iterable[names.File], free: int, room: Room, station: bool, current: str = ""
) -> Verdict:
    """Decides what the ring removes: acknowledged files, the oldest first; then,
    without a station, those that nobody keeps: parked ones that are not new, then the
    oldest.

    Those of the recording `current` are the newest. One that is open never goes.
    """
    files = sorted(files)
    used = sum(one.size for one in files)
    sealed = [one for one in files if one.name.suffix == names.SEALED]
    may = [one for one in sealed if one.acknowledged]
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


class NoRoom(OSError):
    """Raised when the card is full, and nothing may go."""


class Ring:
    """The ring of recordings in one folder. Every call may raise OSError."""

    def __init__(self, folder: FolderLike, settings: config.Recording) -> None:
        self.left: int | None = None
        """Bytes until something must go; None: nobody looked yet."""
        self.room = Room(settings.keep_free_mb * MB, settings.max_mb * MB)
        self._folder, self._settings = folder, settings
        self._use = Use()
        """What all files but the open one use."""

    def enough(self, open_b: int) -> bool:
        """Is as much free as has to be? The open file has so many bytes."""
        free = self._folder.free()
        self._note_left(free, open_b)
        return free >= self.room.keep_free

    def make_room(self, current: str, opened: tuple[str, int], recent: Collection[str]) -> None:
        """Removes what the function make_room says. `current` is the recording of now,
        `opened` its open file's name and bytes; a `recent` file may be kept yet.

        Raises NoRoom.
        """
        free = self._folder.free()
        files = [
            one._replace(parked=one.parked and one.name.text not in recent)
            for one in names.files_of(self._folder.entries())
        ]
        station = self._settings.station
        gone, enough = make_room(files, free, self.room, station, current)
        for name in gone:
            log.info("%s goes: the card is full", name)
            for one in names.BESIDE:
                self._folder.remove(name + one)
            self._folder.remove(name)
        others = {*gone, opened[0]}
        self._use = use_of(one for one in files if one.name.text not in others)
        free = self._folder.free()
        self._note_left(free, opened[1])
        if not enough:
            raise self._full(free)

    def _note_left(self, free: int, open_b: int) -> None:
        use = self._use._replace(own=self._use.own + open_b)
        self.left = self.room.left(free, use)

    def _full(self, free: int) -> NoRoom:
        settings = self._settings
        waits = " until a base station has some" if settings.station else ""
        return NoRoom(
            errno.ENOSPC,
            f"{free / MB:.0f} MB free (keep_free_mb = {settings.keep_free_mb}, "
            f"max_mb = {settings.max_mb}), and no recording may go{waits}; "
            "make room, or sudo fpvcar doctor",
        )
