"""Keeps what a list shows of each recording in one small file beside them.

Looking into a thousand files of a cold card takes 10 s, reading this one does not. It
is never trusted over a file: what it says counts for a file of the same name, size,
time and inode. A line that cannot be read is as if it were not there: each is JSON by
itself, so that reading thousands never holds the interpreter for long.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

from fpvcar.runtime import files

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


class _Line(msgspec.Struct, Generic[T], array_like=True):
    """What is known of one file."""

    name: str
    stamp: Stamp
    known: T


class Index(Generic[T]):
    """The file of one folder; `kind` is what it keeps of each recording."""

    def __init__(self, folder: Path, kind: type[T]) -> None:
        self.folder = folder
        line = _Line[kind]  # type: ignore[valid-type]
        self._path, self._decoder = folder / NAME, msgspec.json.Decoder(line)

    def read(self, rest: Callable[[], None] = lambda: None) -> dict[str, tuple[Stamp, T]]:
        """Reads what is known, by name; nothing if it cannot be read. Calls `rest`
        before each line."""
        found: dict[str, tuple[Stamp, T]] = {}
        wrong = 0
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return {}
        except OSError as fault:
            log.info("%s: made anew: %s", self._path, fault)
            return {}
        for line in lines:
            rest()
            try:
                one: _Line[T] = self._decoder.decode(line)
            except (ValueError, msgspec.DecodeError, RecursionError):
                wrong += 1
            else:
                found[one.name] = one.stamp, one.known
        if wrong:
            log.info("%s: %d lines cannot be read, made anew", self._path, wrong)
        return found

    def write(self, known: Mapping[str, tuple[Stamp, T]]) -> None:
        """Replaces it; where that cannot be, the next list is slow again."""
        lines = (
            msgspec.json.encode(_Line(name, stamp, one)) + b"\n"
            for name, (stamp, one) in known.items()
        )
        with contextlib.suppress(OSError):
            files.write_whole(self._path, lines)
