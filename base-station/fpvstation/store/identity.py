"""Identity of a store: a marker file with its id, checked before each write.

A disk that is unmounted, at the start or later, must not be taken for an empty store.
"""

import contextlib
import errno
import secrets
from collections.abc import Callable

import msgspec

from fpvcar.runtime.texts import Phrase
from fpvstation.errors import StationError
from fpvstation.store.disk import Disk

STORE_GONE = Phrase("store_gone", "found the store {found}, expected {store}: mount its disk")
STORE_MARKER = Phrase("store_marker", "{path}: {reason}; is this folder a store?")

MARKER, FORMAT = ".fpvstation.json", 1
LOCK = ".lock"
"""File that a running station locks."""
TRIALS = (".trial", ".tried")
FULL = (errno.ENOSPC, errno.EDQUOT)
ANOTHER = "accept this one with --store-changed (make run STORE_CHANGED=1)"
NEEDS = (
    "a store needs a file system that syncs and renames, as ext4, XFS, btrfs and exFAT "
    "do: name a folder on one with --store DIR"
)


class StoreGone(StationError):
    """Raised when the store's disk is gone: no segment can be stored."""


class _Marker(msgspec.Struct):
    """Content of the marker file."""

    format: int
    id: str


class Identity:
    """Identity of one store. Every call may block, and raise OSError."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._id = ""

    def open(self, known: str) -> str:
        """Return the store's id; `known` is its id at the last start, "" at the first one.

        Raises StationError if another store, or an unmounted disk, is found.
        """
        try:
            marker = self._marker()
        except FileNotFoundError:
            self._id = self._create(known)
            return self._id
        if marker.format != FORMAT:
            raise StationError(
                f"{MARKER}: format {marker.format}, expected {FORMAT}: update fpvstation"
            )
        if known and marker.id != known:
            raise StationError(
                f"found the store {marker.id}, expected {known}: mount the right disk, or {ANOTHER}"
            )
        self._do("sync", lambda: self._disk.sync(MARKER))  # a kill may have come before the sync
        self._id = marker.id
        return marker.id

    @property
    def id(self) -> str:
        """Id of the open store."""
        return self._id

    def check(self) -> None:
        """Raise StoreGone if the store's disk was unmounted: writes would then fill the folder
        below it, and not be stored."""
        try:
            marker_id = self._marker().id
        except FileNotFoundError:
            marker_id = ""
        if marker_id != self._id:
            raise StoreGone(STORE_GONE(found=marker_id or "–", store=self._id))

    def try_out(self) -> None:
        """Raise StationError if the file system lacks an operation that a store needs. The fault
        is thus reported at the start, not by each segment. A full disk is no such fault."""
        disk, (first, second) = self._disk, TRIALS
        for operation, act in (
            ("remove", self._remove_trials),  # left by a kill
            ("write", lambda: disk.write_at(first, 0, b"one")),
            ("sync", lambda: disk.sync(first)),
            ("rename", lambda: disk.publish(first, second)),
            ("replace", lambda: disk.replace(second, b"other")),
            ("remove", self._remove_trials),
        ):
            try:
                self._do(operation, act)
            except (OSError, StationError) as fault:
                with contextlib.suppress(OSError):
                    self._remove_trials()
                if isinstance(fault, StationError):
                    raise
                return

    def _do(self, operation: str, act: Callable[[], None]) -> None:
        """Run an operation. Raises StationError if it is not supported, OSError if the disk is
        full."""
        try:
            act()
        except OSError as fault:
            if fault.errno in FULL:
                raise
            raise StationError(
                f"the store's file system does not {operation} a file ({fault.strerror}): {NEEDS}"
            ) from None

    def _remove_trials(self) -> None:
        for path in TRIALS:
            self._disk.remove(path)

    def _marker(self) -> _Marker:
        try:
            return msgspec.json.decode(self._disk.read(MARKER), type=_Marker)
        except (ValueError, msgspec.DecodeError, RecursionError) as fault:
            raise StationError(STORE_MARKER(path=MARKER, reason=fault)) from None

    def _create(self, known: str) -> str:
        if known:
            raise StationError(
                f"no {MARKER} here, expected the store {known}: mount its disk, or {ANOTHER}"
            )
        own = ("lost+found", LOCK, ".changing", *TRIALS)
        foreign = [name for name in self._disk.names("") if name not in own]
        if foreign:
            raise StationError(
                f"{foreign[0]} is here, but no {MARKER}: give the store its own folder"
            )
        self.try_out()
        marker = _Marker(FORMAT, secrets.token_hex(8))
        self._disk.replace(MARKER, msgspec.json.encode(marker))
        return marker.id
