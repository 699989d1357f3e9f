"""Keeps what a list shows of each recording in one small file beside them.

Looking into a thousand files of a cold card takes 10 s, reading this one does not. It
is never trusted over a file: what it says counts for a file of the same name, size,
time and inode. One that is wrong, or cannot be read, is made anew.
"""

import contextlib
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

from fpvcar import files

NAME = ".list.json"
T = TypeVar("T")
log = logging.getLogger("fpvcar.recordings")


class Stamp(NamedTuple):
    """What changes when a file does."""

    size: int
    changed_ns: int
    inode: int


def stamp_of(about: os.stat_result) -> Stamp:
    """Takes what counts of a file's status."""
    return Stamp(about.st_size, about.st_mtime_ns, about.st_ino)


class Index(Generic[T]):
    """The file of one folder; `kind` is what it keeps of each recording."""

    def __init__(self, folder: Path, kind: type[T]) -> None:
        self.folder = folder
        self._path, self._kind = folder / NAME, kind

    def read(self) -> dict[str, tuple[Stamp, T]]:
        """Reads what is known, by name; nothing if it cannot be read."""
        kind = dict[str, tuple[Stamp, self._kind]]  # type: ignore[name-defined]
        try:
            found: dict[str, tuple[Stamp, T]] = msgspec.json.decode(
                self._path.read_bytes(), type=kind
            )
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as fault:
            log.info("%s: made anew: %s", self._path, fault)
            return {}
        return found

    def write(self, known: Mapping[str, tuple[Stamp, T]]) -> None:
        """Replaces it; where that cannot be, the next list is slow again."""
        with contextlib.suppress(OSError):
            files.write_whole(self._path, [msgspec.json.encode(known)])
