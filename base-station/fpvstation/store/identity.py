"""Identity of a store: a marker file with its id, checked before each write.

A disk that is unmounted, at the start or later, must not be taken for an empty store.
"""

import contextlib
import errno
import secrets
from collections.abc import Callable

import msgspec

from fpvstation.store.disk import Disk

MARKER, FORMAT = ".fpvstation.json", 1
TRIALS = (".trial", ".tried")
FULL = (errno.ENOSPC, errno.EDQUOT)
ANOTHER = "take this one from now on: --store-changed (make run STORE_CHANGED=1)"
NEEDS = (
    "a store needs a file system that syncs and renames, as ext4, XFS, btrfs and exFAT "
    "do: name a folder on one with --store DIR"
)


class StoreError(Exception):
    """Fault of a store; the text gives the reason and the next step."""


class StoreGone(StoreError):
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

        Raises StoreError if another store, or an unmounted disk, is found.
        """
        try:
            marker = self._marker()
        except FileNotFoundError:
            self._id = self._begin(known)
            return self._id
        if marker.format != FORMAT:
            raise StoreError(
                f"{MARKER}: format {marker.format}, expected {FORMAT}: update fpvstation"
            )
        if known and marker.id != known:
            raise StoreError(
                f"this is the store {marker.id}, expected {known}: mount the right "
                f"disk, or {ANOTHER}"
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
            found = self._marker().id
        except FileNotFoundError:
            found = ""
        if found != self._id:
            raise StoreGone(
                f"{found or 'no store'} is here, expected the store {self._id}: mount its disk"
            )

    def try_out(self) -> None:
        """Raise StoreError if the file system lacks an operation that a store needs. The fault
        is thus reported at the start, not by each segment. A full disk is no such fault."""
        disk, (one, other) = self._disk, TRIALS
        for word, act in (
            ("remove", self._forget_trials),  # left by a kill
            ("write", lambda: disk.write_at(one, 0, b"one")),
            ("sync", lambda: disk.sync(one)),
            ("rename", lambda: disk.publish(one, other)),
            ("replace", lambda: disk.replace(other, b"other")),
            ("remove", self._forget_trials),
        ):
            try:
                self._do(word, act)
            except (OSError, StoreError) as fault:
                with contextlib.suppress(OSError):
                    self._forget_trials()
                if isinstance(fault, StoreError):
                    raise
                return

    def _do(self, word: str, act: Callable[[], None]) -> None:
        """Run an operation. Raises StoreError if it is not supported, OSError if the disk is
        full."""
        try:
            act()
        except OSError as fault:
            if fault.errno in FULL:
                raise
            raise StoreError(
                f"the store's file system does not {word} a file ({fault.strerror}): {NEEDS}"
            ) from None

    def _forget_trials(self) -> None:
        for path in TRIALS:
            self._disk.remove(path)

    def _marker(self) -> _Marker:
        try:
            return msgspec.json.decode(self._disk.read(MARKER), type=_Marker)
        except (ValueError, msgspec.DecodeError, RecursionError) as fault:
            raise StoreError(f"{MARKER}: {fault}; is this folder a store?") from None

    def _begin(self, known: str) -> str:
        if known:
            raise StoreError(
                f"no {MARKER} here, expected the store {known}: mount its disk, or {ANOTHER}"
            )
        own = ("lost+found", ".lock", ".changing", *TRIALS)
        strangers = [one for one in self._disk.names("") if one not in own]
        if strangers:
            raise StoreError(
                f"{strangers[0]} is here and no {MARKER}: give the store a folder of its own"
            )
        self.try_out()
        made = _Marker(FORMAT, secrets.token_hex(8))
        self._disk.replace(MARKER, msgspec.json.encode(made))
        return made.id
