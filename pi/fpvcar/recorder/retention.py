"""The room that a card has for recordings: how much is left, and what goes for more."""

import errno
import logging
from collections.abc import Collection

from fpvcar import config
from fpvcar.recorder.folder import Disk
from fpvcar.recordings import names
from fpvcar.recordings.names import MEGA, Room, Use

log = logging.getLogger("fpvcar.recorder")


class NoRoom(OSError):
    """The card is full, and nothing may go."""


class Ring:
    """The ring in one folder. Everything may raise OSError."""

    def __init__(self, disk: Disk, settings: config.Recording) -> None:
        self.left: int | None = None
        """Bytes until something must go; None: nobody looked yet."""
        self.room = Room(settings.keep_free_mb * MEGA, settings.max_mb * MEGA)
        self._disk, self._settings = disk, settings
        self._use = Use()
        """Of all files but the open one."""

    def enough(self, open_b: int) -> bool:
        """Is as much free as has to be? The open file has so many bytes."""
        free = self._disk.free()
        self._tell(free, open_b)
        return free >= self.room.keep_free

    def make_room(
        self, current: str, opened: tuple[str, int], recent: Collection[str]
    ) -> None:
        """Lets go what segments.make_room says. `current` is the recording of now,
        `opened` its open file's name and bytes; a `recent` file may be kept yet.

        Raises NoRoom."""
        free = self._disk.free()
        files = [
            one._replace(parked=one.parked and one.name.text not in recent)
            for one in names.files_of(self._disk.entries())
        ]
        station = self._settings.station
        gone, enough = names.make_room(files, free, self.room, station, current)
        for name in gone:
            log.info("%s goes: the card is full", name)
            self._disk.remove(name)
            for mark in names.MARKS:
                self._disk.remove(name + mark)
        others = {*gone, opened[0]}
        self._use = names.use_of(one for one in files if one.name.text not in others)
        free = self._disk.free()
        self._tell(free, opened[1])
        if not enough:
            raise self._full(free)

    def _tell(self, free: int, open_b: int) -> None:
        use = self._use._replace(own=self._use.own + open_b)
        self.left = self.room.left(free, use)

    def _full(self, free: int) -> NoRoom:
        settings = self._settings
        waits = " until a base station has some" if settings.station else ""
        return NoRoom(
            errno.ENOSPC,
            f"{free / MEGA:.0f} MB free (keep_free_mb = {settings.keep_free_mb}, "
            f"max_mb = {settings.max_mb}), and no recording may go{waits}",
        )
