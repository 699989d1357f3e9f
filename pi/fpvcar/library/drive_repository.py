"""Drives of a folder for the recordings page: search, rename and delete.

A base station implements DriveRepository separately, for the drives of many cars.
"""

import contextlib
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from fpvcar.library.deleted import DeletionRegister
from fpvcar.library.drives import Drive, DriveFilter, Part, drives_of
from fpvcar.library.recording_index import Page, RecordingIndex
from fpvcar.library.titles import Titles
from fpvcar.recordings import names
from fpvcar.runtime.texts import Refusal, Text
from fpvcar.runtime.workers import Rest

LOOK_S = 1.5
"""Time budget of one list request for files that are not indexed yet, in seconds."""
CAR, STATION = "car", "station"
"""Place of a drive: still on its car, or fetched by a base station."""
OPEN = Text("drive_open", "This drive is still being recorded: delete it a minute after its end.")
UNREAD = Text("export_open", "The recordings are still being read: try again in a moment.")
GONE = Text("drive_gone", "This drive no longer exists: reload the page.")
log = logging.getLogger("fpvcar.recordings")


class DriveMissing(Refusal):
    """Error: the requested drive no longer exists."""


class DriveBusy(Refusal):
    """Error: the drive cannot be changed now."""


class DriveCopy(msgspec.Struct, frozen=True):
    """Copy of a drive in another place; `place` is "" in a station's own store.

    `verified_s` is the UTC time of the last verification, 0 if unknown. `whole` is true if the copy
    is complete. `tier` is set for a copy in an archive: "folder", "bucket", or "away" for a folder
    that is not mounted.
    """

    place: str
    verified_s: float
    whole: bool
    tier: str = ""


class DrivePage(NamedTuple):
    """Page of a drive list, newest first; `more` is true if older drives follow.

    `drivers` lists the drivers of all drives. `unread` is the number of files not indexed yet.
    `copies` are keyed by drive.
    """

    drives: Sequence[Drive | msgspec.Raw]
    more: bool
    drivers: Sequence[str]
    unread: int
    copies: dict[str, list[DriveCopy]] = {}


class DriveRepository(Protocol):
    """Store of recordings. Every call blocks: call it from a thread."""

    editable: bool
    """True if drives can be renamed."""

    def paths(self, file_names: Iterable[str]) -> dict[str, Path]:
        """Return the files with these names.

        A file that was sealed a moment ago is also found under its previous name.
        """

    def writing(self, path: Path) -> bool:
        """Return whether this file is still being written."""

    def page(self, before: str, most: int) -> Page:
        """List the last `most` files whose names sort before `before`; "" for no limit."""

    def find(self, drive_filter: DriveFilter, before_ms: float, most: int) -> DrivePage:
        """List up to `most` drives that began before this UTC time."""

    def name(self, drive_id: str, title: str) -> None:
        """Set the title of a drive. Raises DriveMissing, DriveBusy, OSError."""

    def delete(self, drive_id: str) -> tuple[list[str], list[str]]:
        """Delete a drive's files; return the names of the removed files and of the kept ones.

        Raises DriveMissing, DriveBusy, OSError.
        """


class FolderRepository:
    """Recordings of an index. With `folder` None, renaming and deleting are disabled."""

    def __init__(
        self, index: RecordingIndex, folder: Path | None, hides_parked: bool, rest: Rest
    ) -> None:
        """Call `rest` before processing each drive, to yield to an active drive."""
        self._index, self._rest = index, rest
        self._folder, self._hides_parked = folder, hides_parked
        self.editable = folder is not None
        self._titles = Titles(folder) if folder is not None else None
        self._deleted = DeletionRegister(folder) if folder is not None else None
        self.writing, self.page = index.writing, index.page
        self.paths = index.paths

    def find(self, drive_filter: DriveFilter, before_ms: float, most: int) -> DrivePage:
        """List drives; parked ranges are shown if the user chose the files or if all are parked."""
        drives, unread = self._all()
        if not self._hides_parked or all(drive.parked for drive in drives):
            drive_filter = drive_filter.unhidden()
        matches = [drive for drive in drives if drive_filter.takes(drive)]
        matches = [drive for drive in matches if drive.start_ms < before_ms]
        drivers = sorted({name for drive in drives for name in drive.drivers})
        more, matches = len(matches) > most, matches[:most]
        return DrivePage(matches, more, drivers, unread, self._copies(matches))

    def _copies(self, drives: Iterable[Drive]) -> dict[str, list[DriveCopy]]:
        """Return the copies on a base station, found by the receipts beside the files."""
        if self._folder is None:
            return {}
        with contextlib.suppress(OSError):
            file_names = set(os.listdir(self._folder))
            fetched = {
                drive.id: [part.name + names.ACKNOWLEDGED in file_names for part in drive.parts]
                for drive in drives
            }
            return {
                drive_id: [DriveCopy(STATION, 0.0, all(parts))]
                for drive_id, parts in fetched.items()
                if any(parts)
            }
        return {}

    def name(self, drive_id: str, title: str) -> None:
        assert self._titles is not None  # guaranteed by `editable`
        drives = self._whole()
        file_names = [part.name for drive in drives for part in drive.parts]
        self._titles.name(_named(drive_id, drives), title, file_names)

    def delete(self, drive_id: str) -> tuple[list[str], list[str]]:
        """Delete a drive, except for files still being written and files shared with another drive.

        The deleted drive's range in a shared file is no longer listed.
        """
        assert self._deleted is not None  # guaranteed by `editable`
        drives = self._whole()
        drive = _named(drive_id, drives)
        if drive.state == "open" or any(map(self._writing, drive.parts)):
            raise DriveBusy(OPEN)
        own = {part.name for part in drive.parts if not part.shared}
        shared = [part for part in drive.parts if part.shared]
        remaining = {part.name for entry in drives for part in entry.parts} - own
        # Register the ranges first: a drive whose own files could not be removed is still listed.
        try:
            self._deleted.note(shared, remaining)
        except OSError as fault:  # for example a full card: the removed files make room
            log.warning("files shared with a deleted drive stay listed: %s", fault)
        return self._index.remove(own), [part.name for part in shared]

    def _whole(self) -> list[Drive]:
        """Return all drives. Raises DriveBusy while files are not indexed, as they may be
        shared."""
        drives, unread = self._all()
        if unread:
            raise DriveBusy(UNREAD)
        return drives

    def _all(self) -> tuple[list[Drive], int]:
        """Return the drives and the number of files that are not indexed yet."""
        indexed = self._index.scan(LOOK_S)
        if self._titles is None or self._deleted is None:
            return drives_of(indexed.entries, self._rest), indexed.unread
        drives = drives_of(indexed.entries, self._rest, self._deleted.gone())
        return self._titles.named(drives), indexed.unread

    def _writing(self, part: Part) -> bool:
        path = self._index.paths([part.name]).get(part.name)
        return path is not None and not path.name.endswith(names.SEALED)


def _named(drive_id: str, drives: Sequence[Drive]) -> Drive:
    """Return the drive with this ID. Raises DriveMissing."""
    with contextlib.suppress(StopIteration):
        return next(drive for drive in drives if drive.id == drive_id)
    raise DriveMissing(GONE)
