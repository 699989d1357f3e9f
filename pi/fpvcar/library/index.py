"""Index of the list summary of each recording, in one small file beside the recordings.

Scanning a thousand files of a cold card takes 10 s; the index avoids that. An entry is valid only
for a file with the same name, size, time and inode. Unreadable lines are ignored. Each line is
separate JSON, so reading thousands never holds the interpreter for long.
"""

import contextlib
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

from fpvcar.runtime import files
from fpvcar.runtime.workers import Rest, no_rest

NAME = ".list.json"
T = TypeVar("T")
log = logging.getLogger("fpvcar.recordings")


class Stamp(NamedTuple):
    """Properties that change whenever the file changes."""

    size: int
    changed_ns: int
    inode: int


def stamp_of(about: os.stat_result) -> Stamp:
    """Return the stamp from a file's status."""
    return Stamp(about.st_size, about.st_mtime_ns, about.st_ino)


class _Line(msgspec.Struct, Generic[T], array_like=True):
    """Index entry of one file."""

    name: str
    stamp: Stamp
    summary: T


class IndexFile(Generic[T]):
    """Index file of one folder; `kind` is the type of its summaries."""

    def __init__(self, folder: Path, kind: type[T]) -> None:
        self.folder = folder
        line = _Line[kind]  # type: ignore[valid-type]
        self._path, self._decoder = folder / NAME, msgspec.json.Decoder(line)

    def read(self, rest: Rest = no_rest) -> dict[str, tuple[Stamp, T]]:
        """Return the index entries by name, empty if unreadable. Calls `rest` before each line."""
        entries: dict[str, tuple[Stamp, T]] = {}
        unreadable = 0
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return {}
        except OSError as fault:
            log.info("%s: created again: %s", self._path, fault)
            return {}
        for line in lines:
            rest()
            try:
                entry: _Line[T] = self._decoder.decode(line)
            except (ValueError, msgspec.DecodeError, RecursionError):
                unreadable += 1
            else:
                entries[entry.name] = entry.stamp, entry.summary
        if unreadable:
            log.info("%s: %d lines cannot be read, created again", self._path, unreadable)
        return entries

    def write(self, entries: Mapping[str, tuple[Stamp, T]]) -> None:
        """Replace the index file. If that fails, the next list is slow again."""
        lines = (
            msgspec.json.encode(_Line(name, stamp, summary)) + b"\n"
            for name, (stamp, summary) in entries.items()
        )
        with contextlib.suppress(OSError):
            files.write_whole(self._path, lines)
