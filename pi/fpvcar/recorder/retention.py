"""Retention policy: choose the recordings to remove from a full card; compute the space left."""

import errno
import logging
from collections.abc import Collection, Iterable
from typing import NamedTuple

from fpvcar import config
from fpvcar.recorder.folder import Folder
from fpvcar.recordings import names
from fpvcar.runtime.units import MB

log = logging.getLogger("fpvcar.recorder")
NEW_SHARE = 8
"""Fraction of new files: the newest 1/NEW_SHARE are not removed before drives."""


class Usage(NamedTuple):
    """Bytes of recordings: `spare` are on a base station, `own` are only on the car."""

    spare: int = 0
    own: int = 0


def use_of(files: Iterable[names.File]) -> Usage:
    """Sum the sizes of both kinds."""
    sizes = {True: 0, False: 0}
    for file in files:
        sizes[file.acknowledged] += file.size
    return Usage(sizes[True], sizes[False])


class SpaceLimits(NamedTuple):
    """Space limits of the ring in bytes: minimum free space, and maximum total size."""

    keep_free: int
    most: int

    def left(self, free: int, use: Usage) -> int:
        """Return the bytes that fit before files without a copy must be removed."""
        return max(0, min(free + use.spare - self.keep_free, self.most - use.own))


class Removal(NamedTuple):
    """Files to remove, in this order; `enough` is true if there is space to record afterwards."""

    gone: tuple[str, ...]
    enough: bool


def make_room(
    files: Iterable[names.File], free: int, room: SpaceLimits, station: bool, current: str = ""
) -> Removal:
    """Choose the files to remove until the limits are met.

    Acknowledged files go first, oldest first. Without a station, files without a keep mark follow:
    parked ones that are not new, then the oldest. Files of the recording `current` count as newest.
    Open files are never removed.
    """
    files = sorted(files)
    used = sum(file.size for file in files)
    sealed = [file for file in files if file.name.suffix == names.SEALED]
    candidates = [file for file in sealed if file.acknowledged]
    if not station:
        unfetched = [file for file in sealed if not file.acknowledged and not file.kept]
        unfetched.sort(key=lambda file: file.name.recording == current)
        new = {file.name for file in unfetched[len(unfetched) - len(unfetched) // NEW_SHARE :]}
        candidates += sorted(unfetched, key=lambda file: not file.parked or file.name in new)
    gone = []
    for file in candidates:
        if free >= room.keep_free and used <= room.most:
            break
        gone.append(file.name.text)
        free, used = free + file.size, used - file.size
    return Removal(tuple(gone), free >= room.keep_free and used <= room.most)


class CardFull(OSError):
    """Error: the card is full, and no file may be removed."""


class Ring:
    """Ring of recordings in one folder. Every call may raise OSError."""

    def __init__(self, folder: Folder, settings: config.Recording) -> None:
        self.left: int | None = None
        """Bytes until a file must be removed; None before the first check."""
        self.room = SpaceLimits(settings.keep_free_mb * MB, settings.max_mb * MB)
        self._folder, self._settings = folder, settings
        self._use = Usage()
        """Bytes used by all files except the open one."""

    def enough(self, open_b: int) -> bool:
        """Return whether free space is sufficient; `open_b` is the size of the open file."""
        free = self._folder.free()
        self._note_left(free, open_b)
        return free >= self.room.keep_free

    def make_room(self, current: str, opened: tuple[str, int], recent: Collection[str]) -> None:
        """Remove the files chosen by the function make_room.

        `current` is the current recording, `opened` its open file's name and bytes. Files in
        `recent` may still be kept, so they do not count as parked.

        Raises CardFull.
        """
        free = self._folder.free()
        files = [
            file._replace(parked=file.parked and file.name.text not in recent)
            for file in names.files_of(self._folder.entries())
        ]
        station = self._settings.station
        gone, enough = make_room(files, free, self.room, station, current)
        for name in gone:
            log.info("%s deleted: the card is full", name)
            for suffix in names.BESIDE:
                self._folder.remove(name + suffix)
            self._folder.remove(name)
        others = {*gone, opened[0]}
        self._use = use_of(file for file in files if file.name.text not in others)
        free = self._folder.free()
        self._note_left(free, opened[1])
        if not enough:
            raise self._full(free)

    def _note_left(self, free: int, open_b: int) -> None:
        use = self._use._replace(own=self._use.own + open_b)
        self.left = self.room.left(free, use)

    def _full(self, free: int) -> CardFull:
        settings = self._settings
        waits = " until a base station has fetched some" if settings.station else ""
        return CardFull(
            errno.ENOSPC,
            f"{free / MB:.0f} MB free (keep_free_mb = {settings.keep_free_mb}, "
            f"max_mb = {settings.max_mb}), and no recording may be deleted{waits}; "
            "make room, or sudo fpvcar doctor",
        )
