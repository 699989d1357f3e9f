"""Which store a folder is: a marker file says so, and is asked before each write.

A disk that is not mounted is no empty store, and one that was unmounted none either.
"""

import secrets

import msgspec

from fpvstation.disk import Disk

MARKER, FORMAT = ".fpvstation.json", 1


class StoreError(Exception):
    """Says why a store cannot be used, and what to do."""


class StoreGone(StoreError):
    """Its disk is not here any more: no segment can be stored."""


class _Marker(msgspec.Struct):
    """What a store says of itself."""

    format: int
    id: str


class Identity:
    """Which store this is. Every call may block, and raise OSError."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._id = ""

    def open(self, known: str) -> str:
        """Returns the store's id; `known` is the one that it had before, "" for none.

        Raises StoreError: a disk that is not mounted is no empty store.
        """
        try:
            marker = self._marker()
        except FileNotFoundError:
            self._id = self._begin(known)
            return self._id
        if marker.format != FORMAT:
            raise StoreError(
                f"{MARKER}: format {marker.format}, expected {FORMAT}: update "
                "fpvstation"
            )
        if known and marker.id != known:
            raise StoreError(
                f"this is the store {marker.id}, expected {known}: mount the right "
                "disk, or say --store-changed"
            )
        self._disk.sync(MARKER)  # a kill may have come before that
        self._id = marker.id
        return marker.id

    @property
    def id(self) -> str:
        """Of the store that is open."""
        return self._id

    def check(self) -> None:
        """Raises StoreGone if the disk of this store was unmounted meanwhile: what is
        written then fills the folder below it, and is not stored."""
        try:
            found = self._marker().id
        except FileNotFoundError:
            found = ""
        if found != self._id:
            raise StoreGone(
                f"{found or 'no store'} is here, expected the store {self._id}: mount "
                "its disk"
            )

    def _marker(self) -> _Marker:
        try:
            return msgspec.json.decode(self._disk.read(MARKER), type=_Marker)
        except (ValueError, msgspec.DecodeError, RecursionError) as fault:
            raise StoreError(f"{MARKER}: {fault}; is this folder a store?") from None

    def _begin(self, known: str) -> str:
        if known:
            raise StoreError(
                f"no {MARKER} here, expected the store {known}: mount its disk, or say "
                "--store-changed"
            )
        own = ("lost+found", ".lock", ".changing")
        strangers = [one for one in self._disk.names("") if one not in own]
        if strangers:
            raise StoreError(
                f"{strangers[0]} is here and no {MARKER}: give the store a folder of "
                "its own"
            )
        made = _Marker(FORMAT, secrets.token_hex(8))
        self._disk.replace(MARKER, msgspec.json.encode(made))
        return made.id
