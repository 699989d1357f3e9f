"""The drives of a folder, as the recordings page asks for them: found, named, deleted.

A base station has another shelf, for the drives of many cars.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from fpvcar.recordings import names
from fpvcar.recordings.library.deleted import Deleted
from fpvcar.recordings.library.drives import Drive, Part, Wanted, drives_of
from fpvcar.recordings.library.recording_index import Library, Page
from fpvcar.recordings.library.titles import Titles

LOOK_S = 1.5
"""How long a list looks into files that nobody looked into before."""
CAR, STATION = "car", "station"
"""The place of what is on its car still, and of what a base station fetched."""
log = logging.getLogger("fpvcar.recordings")


class DriveMissing(Exception):
    """There is no such drive any more."""


class DriveBusy(Exception):
    """It cannot be changed now; says when it can."""


class Copy(msgspec.Struct, frozen=True):
    """A copy of a drive elsewhere, "" in a station's own store: when it was judged, UTC
    (0 if nobody knows), and whether nothing of the drive is missing there."""

    place: str
    verified_s: float
    whole: bool


class Found(NamedTuple):
    """Drives of a list, the newest first; are there more of them? `drivers` are of all
    drives; `unread` files are not looked into yet; `copies` are by drive."""

    drives: Sequence[Drive | msgspec.Raw]
    more: bool
    drivers: Sequence[str]
    unread: int
    copies: dict[str, list[Copy]] = {}


class Shelf(Protocol):
    """Where recordings are. Every call blocks: call it from a thread."""

    editable: bool
    """Can drives be named?"""

    def paths(self, wanted: Iterable[str]) -> dict[str, Path]:
        """The files of these names; one that was sealed a moment ago also by the name
        that it had before."""

    def writing(self, path: Path) -> bool:
        """Is this file still being written?"""

    def page(self, before: str, most: int) -> Page:
        """Lists the last files whose names are before `before`; "": of all."""

    def find(self, wanted: Wanted, before_ms: float, most: int) -> Found:
        """Lists drives that began before a time, UTC."""

    def name(self, drive: str, title: str) -> None:
        """Names a drive. Raises DriveMissing, DriveBusy, OSError."""

    def delete(self, drive: str) -> tuple[list[str], list[str]]:
        """Deletes a drive's files; returns the names of those that are gone, and that
        stay. Raises DriveMissing, DriveBusy, OSError."""


class FolderShelf:
    """The recordings of a library. Without a `folder` nothing is named or deleted."""

    def __init__(
        self, library: Library, folder: Path | None, hides_parked: bool, rest: Callable[[], None]
    ) -> None:
        """`rest` is called before each drive: somebody may be at the wheel."""
        self._library, self._rest = library, rest
        self._folder, self._hides_parked = folder, hides_parked
        self.editable = folder is not None
        self._titles = Titles(folder) if folder is not None else None
        self._deleted = Deleted(folder) if folder is not None else None
        self.writing, self.page = library.writing, library.page
        self.paths = library.paths

    def find(self, wanted: Wanted, before_ms: float, most: int) -> Found:
        """Files that somebody chose, or that are all there is, are shown, parked or
        not."""
        drives, unread = self._all()
        if not self._hides_parked or all(one.parked for one in drives):
            wanted = wanted.unhidden()
        found = [one for one in drives if wanted.takes(one)]
        found = [one for one in found if one.start_ms < before_ms]
        drivers = sorted({name for one in drives for name in one.drivers})
        more, found = len(found) > most, found[:most]
        return Found(found, more, drivers, unread, self._copies(found))

    def _copies(self, drives: Iterable[Drive]) -> dict[str, list[Copy]]:
        """What a base station has: its receipts lie beside the files."""
        if self._folder is None:
            return {}
        with contextlib.suppress(OSError):
            there = set(os.listdir(self._folder))
            fetched = {
                one.id: [part.name + names.ACKNOWLEDGED in there for part in one.parts]
                for one in drives
            }
            return {
                drive: [Copy(STATION, 0.0, all(parts))]
                for drive, parts in fetched.items()
                if any(parts)
            }
        return {}

    def name(self, drive: str, title: str) -> None:
        """See Shelf."""
        assert self._titles is not None  # it is editable
        drives = self._whole()
        there = [part.name for one in drives for part in one.parts]
        self._titles.name(_named(drive, drives), title, there)

    def delete(self, drive: str) -> tuple[list[str], list[str]]:
        """A file that is still being written stays, and so does one that another drive
        has a part in: what is in it of this drive is not listed any more."""
        assert self._deleted is not None  # it is editable
        drives = self._whole()
        one = _named(drive, drives)
        if one.state == "open" or any(map(self._writing, one.parts)):
            raise DriveBusy(
                "This drive is still being recorded: a minute after it ended it can be deleted."
            )
        going = {part.name for part in one.parts if not part.shared}
        shared = [part for part in one.parts if part.shared]
        there = {part.name for other in drives for part in other.parts} - going
        # First: a drive whose own files could not go is listed all the same.
        try:
            self._deleted.note(shared, there)
        except OSError as fault:  # a full card, say: files that go make room
            log.warning("what stays of a deleted drive is listed: %s", fault)
        return self._library.remove(going), [part.name for part in shared]

    def _whole(self) -> list[Drive]:
        """All drives: whose files are not known may share some. Raises DriveBusy."""
        drives, unread = self._all()
        if unread:
            raise DriveBusy(f"{unread} files are not looked into yet: try again in a moment.")
        return drives

    def _all(self) -> tuple[list[Drive], int]:
        """The drives, and how many files are not looked into yet."""
        known = self._library.known(LOOK_S)
        if self._titles is None or self._deleted is None:
            return drives_of(known.entries, self._rest), known.unread
        drives = drives_of(known.entries, self._rest, self._deleted.gone())
        return self._titles.named(drives), known.unread

    def _writing(self, part: Part) -> bool:
        path = self._library.paths([part.name]).get(part.name)
        return path is not None and not path.name.endswith(names.SEALED)


def _named(drive: str, drives: Sequence[Drive]) -> Drive:
    """Raises DriveMissing."""
    with contextlib.suppress(StopIteration):
        return next(one for one in drives if one.id == drive)
    raise DriveMissing("There is no such drive any more: look at the list again.")
